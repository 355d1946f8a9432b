#!/bin/sh
# Builds the wheel into a folder: build_wheel.sh FOLDER. The tree is copied first: setuptools writes beside its sources.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# dash runs no EXIT trap when a signal ends it.
trap 'exit 143' TERM INT
cp -R pyproject.toml README.md LICENSE upgrade_manager webhook "$work"
PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --no-index \
    --wheel-dir "$1" "$work"
