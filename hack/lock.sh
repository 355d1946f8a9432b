#!/bin/sh
# Writes requirements/*.txt from requirements/*.in: exact versions with hashes, for every supported Python and platform.
# Pins are kept unless an input excludes them, or `--upgrade` is given.
set -eu
cd "$(dirname "$0")/../requirements"

uv=$(command -v uv || true)
if [ -z "$uv" ]; then
    tools=$PWD/../build/lock-tools
    [ -x $tools/bin/uv ] || ../.venv/bin/python -m venv --clear $tools
    $tools/bin/python -m pip install --quiet uv
    uv=$tools/bin/uv
fi

# In this order: each file is constrained by those before it (-c).
for name in run demo test lint supply mutants kubectl go; do
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header "$@" "$name.in" -o "$name.txt"
done

# Separate environments: those of the controllers that `make bench BENCH_ARGS=peers` compares, and of its plots.
cd ../hack/bench/peers/requirements
for input in *.in; do
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header "$@" "$input" -o "${input%.in}.txt"
done
