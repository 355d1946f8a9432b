#!/bin/sh
# Builds or pushes an image: image.sh build|push|buildx IMAGE. Takes $CONTAINER_TOOL, else the first of docker, podman and
# buildah. buildx builds for each of $PLATFORMS, and pushes. $TARGET is manager or toolkit.
set -eu
cd "$(dirname "$0")/.."

action=$1 image=$2
platforms=${PLATFORMS:-linux/amd64,linux/arm64} target=${TARGET:-manager}

find_tool() {
    for candidate in ${CONTAINER_TOOL:-docker podman buildah}; do
        if command -v "$candidate" >/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "image: ${CONTAINER_TOOL:-docker, podman or buildah} is needed, and is not on the PATH. Install one, or name another: CONTAINER_TOOL=/path/to/podman" >&2
    return 1
}

tool=$(find_tool)
case "$action" in
    build) "$tool" build --target "$target" --tag "$image" . ;;
    push) "$tool" push "$image" ;;
    buildx)
        case "$tool" in
            *docker) "$tool" buildx build --target "$target" --platform "$platforms" --push --tag "$image" . ;;
            *)
                "$tool" build --target "$target" --platform "$platforms" --manifest "$image" .
                "$tool" manifest push --all "$image" "docker://$image"
                ;;
        esac
        ;;
    *)
        echo "image: $action is none of build, push, buildx" >&2
        exit 2
        ;;
esac
