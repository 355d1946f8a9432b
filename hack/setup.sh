#!/bin/sh
# Installs the locked dependencies and the project into .venv. A second call ends at once.
#
# .venv/.ready is written last and holds a fingerprint of everything that the set-up depends on. Without it, after an
# interruption, the set-up starts over; with another fingerprint, after a change of the lock files, it installs on top.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
ready=$venv/.ready

fingerprint() {
    pwd
    cat requirements/run.txt requirements/test.txt requirements/lint.txt requirements/supply.txt \
        pyproject.toml hack/setup.sh | cksum
}

usable() { # $1 is Python 3.11 to 3.14 and can create virtual environments
    "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if usable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    found=$(command -v "${PYTHON:-python3}" || true)
    {
        echo "set-up: no usable Python. Needed: 3.11 to 3.14 with its venv and ensurepip modules."
        echo "  found: ${found:-nothing named ${PYTHON:-python3}}${found:+, $("$found" --version 2>&1)}"
        echo "  remedy: install one (Debian, Ubuntu: apt install python3 python3-venv), or name it: make setup PYTHON=/path/to/python3.12"
    } >&2
    return 1
}

if [ "$(cat $ready 2>/dev/null || true)" = "$(fingerprint)" ] && $venv/bin/python -c '' 2>/dev/null; then
    exit 0
fi

if [ -L $venv ] && [ "$(sed -n 1p $ready 2>/dev/null)" != "$(pwd)" ]; then
    echo "set-up: $venv is a link to the environment of another tree ($(readlink $venv)), which this would empty. Run rm $venv first" >&2
    exit 1
fi

python=$(find_python)
if [ -f $ready ] && usable $venv/bin/python && [ "$(sed -n 1p $ready)" = "$(pwd)" ]; then
    echo "set-up: updating $venv"
    rm -f $ready
else
    echo "set-up: creating $venv with $("$python" --version 2>&1)"
    "$python" -m venv --clear $venv
fi

# Packages come from where pip is configured to find them; their hashes are checked. The files name every dependency: pip's
# resolver would take the newest release of one that another asks for with an extra, and refuse it for lack of a hash.
PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_DISABLE_PIP_VERSION_CHECK
$venv/bin/python -m pip install --quiet --no-deps --require-hashes \
    -r requirements/run.txt -r requirements/test.txt -r requirements/lint.txt -r requirements/supply.txt
# setuptools warns of every editable installation.
PYTHONWARNINGS=ignore $venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --no-index --editable .

fingerprint >$ready.new
mv $ready.new $ready
echo "set-up: done"
