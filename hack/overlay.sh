#!/bin/sh
# Writes a kustomization of deploy/default: overlay.sh FOLDER [IMAGE]. An IMAGE replaces the one of both Deployments.
set -eu

folder=$1 image=${2:-}
deploy=$(cd "$(dirname "$0")/../deploy" && pwd -P)
mkdir -p "$folder"
cd "$folder"
# kustomize accepts relative paths only.
up=$(pwd -P | sed 's#/[^/]*#../#g')
{
    echo "resources: [\"$up${deploy#/}/default\"]"
    if [ -n "$image" ]; then
        echo "patches:"
        echo "  - target: {kind: Deployment}"
        echo "    patch: '[{\"op\": \"replace\", \"path\": \"/spec/template/spec/containers/0/image\", \"value\": \"$image\"}]'"
    fi
} >kustomization.yaml
