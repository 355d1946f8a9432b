#!/bin/sh
# Installs locked dependencies and the project into .venv: `setup.sh demo` what the demo needs, `setup.sh` everything.
# A second call ends at once.
#
# .venv/.ready is written last. It holds the path of the tree, and a line for what is installed, `demo` or `demo` and
# `all`, with a fingerprint of everything that this depends on. Without the file, after an interruption, the set-up
# starts over; without the line, or with another fingerprint, after a change of the lock files, it installs on top.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
ready=$venv/.ready
wanted=${1:-all}

locks() { # of $1, demo or all
    case $1 in
        demo) echo requirements/run.txt requirements/demo.txt ;;
        all) echo "$(locks demo)" requirements/test.txt requirements/lint.txt requirements/supply.txt ;;
    esac
}

line() { # of $1 in .ready
    # shellcheck disable=SC2046  # a list of files
    echo "$1 $(cat $(locks "$1") pyproject.toml hack/setup.sh | cksum)"
}

is_of_this_tree() {
    [ "$(sed -n 1p $ready 2>/dev/null)" = "$(pwd)" ]
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

say() { # $1, over the last text on a terminal; in a pipe only what $2 does not mark as passing
    if [ -t 1 ]; then
        printf '\r\033[Kset-up: %s' "$1"
    elif [ "${2:-}" != passing ]; then
        echo "set-up: $1"
    fi
}

show_progress() { # of $1 packages, from the lines of pip
    count=0
    while read -r word name _; do
        case $word in
            Collecting | Requirement)
                count=$((count + 1))
                say "package $count of $1: ${name%%=*}" passing
                ;;
            Installing) say "unpacking them" ;;
        esac
    done
}

install() { # the files $@; pip's exit status is lost in the pipe
    # Other systems' packages are not counted.
    total=$(grep -h '^[A-Za-z0-9].*==' "$@" | grep -v "'win32'" | sed 's/==.*//' | sort -u | wc -l)
    say "installing $((total)) packages"
    for file; do
        set -- "$@" -r "$file"
        shift
    done
    # What the programs import is compiled then; most of it, such as the models of kubernetes_asyncio, never is.
    { $venv/bin/python -m pip install --no-compile --no-deps --require-hashes "$@" && touch $venv/.installed; } | show_progress "$((total))"
    [ -f $venv/.installed ]
}

if is_of_this_tree && grep -qxF "$(line "$wanted")" $ready && $venv/bin/python -c '' 2>/dev/null; then
    exit 0
fi

if [ -L $venv ] && ! is_of_this_tree; then
    echo "set-up: $venv is a link to the environment of another tree ($(readlink $venv)), which this would empty. Run rm $venv first" >&2
    exit 1
fi

python=$(find_python)
if is_of_this_tree && usable $venv/bin/python; then
    say "updating $venv"
    rm -f $ready $venv/.installed
else
    say "creating $venv with $("$python" --version 2>&1)"
    "$python" -m venv --clear $venv
fi

# Packages come from where pip is configured to find them; their hashes are checked. The files name every dependency: pip's
# resolver would take the newest release of one that another asks for with an extra, and refuse it for lack of a hash.
PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_DISABLE_PIP_VERSION_CHECK
# shellcheck disable=SC2046  # a list of files
install $(locks "$wanted")
say "installing the project"
# setuptools warns of every editable installation.
PYTHONWARNINGS=ignore $venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --no-index --editable .

{
    pwd
    line demo
    [ "$wanted" = demo ] || line all
} >$ready.new
mv $ready.new $ready
say "done"
[ ! -t 1 ] || echo
