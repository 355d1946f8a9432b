#!/bin/sh
# Writes into folder $1, which has the image's Python, the programs that Jobs and Plans start. The Dockerfile runs it: only
# images have programs of these names, never a workstation's PATH.
set -eu
folder=$1

program() { # of name $1, which runs function $2 of the entry points
    printf '#!%s/python\nimport sys\n\nfrom upgrade_manager.cli.main import %s\n\nsys.exit(%s())\n' "$folder" "$2" "$2" >"$folder/$1"
    chmod 755 "$folder/$1"
}

program upgrade-toolkit main
program upgrade_node.sh upgrade_node
program upgrade_manifests.sh upgrade_manifests
