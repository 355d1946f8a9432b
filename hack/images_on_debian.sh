#!/bin/sh
# Builds both images by buildah on a Debian machine that reaches no container registry, as root, runs an upgrade in the
# manager's, and the upgrade repository in the toolkit's. Two bases differ from a build elsewhere: Python is Debian's, and helm
# is the one of `make helm`. That a build elsewhere finds its wheels is checked, too.
set -eu
cd "$(dirname "$0")/.."

#: Bytes of all files of the manager's image, its base included.
limit=120000000
#: The version of Python, and the name of the base, that the Dockerfile asks for.
python=$(sed -n 's/^ARG PYTHON=//p' Dockerfile)
base=docker.io/library/python:$python-slim
#: A label of the images.
revision=built-on-debian
authorities=/etc/ssl/certs/ca-certificates.crt
work=$(mktemp -d)
upgrade=''
trap 'kill -9 $upgrade 2>/dev/null || true; wait; buildah rm --all >/dev/null || true; rm -rf "$work"' EXIT
# dash runs no EXIT trap when a signal ends it.
trap 'exit 143' TERM INT

# A store apart from the user's: nothing stays behind.
export BUILDAH_ISOLATION=chroot CONTAINERS_STORAGE_CONF="$work/storage.conf"
unset STORAGE_DRIVER
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' "$work/store" "$work/run" >"$CONTAINERS_STORAGE_CONF"

programs() { # installs what is missing
    for program in buildah mmdebstrap ip mkfs.ext4; do
        command -v "$program" >/dev/null || missing=yes
    done
    [ -n "${missing:-}" ] || return 0
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        buildah mmdebstrap crun iproute2 e2fsprogs >/dev/null
}

sources() { # the machine's own, in either format
    find /etc/apt -name '*.sources' -o -name 'sources.list' | head -n 1
}

wheels() { # that they exist for the Dockerfile's Python on each platform of `make docker-buildx`
    for machine in x86_64 aarch64; do
        set --
        for libc in manylinux2014 manylinux_2_17 manylinux_2_28; do
            set -- "$@" --platform "${libc}_$machine"
        done
        .venv/bin/python -m pip download --quiet --no-deps --require-hashes --only-binary :all: --python-version "$python" "$@" \
            --requirement requirements/run.txt --dest "$work/wheels-$machine"
    done
}

base_image() {
    mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,python3-pip \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/root.tar" "$(sources)"
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$work/root.tar" / >/dev/null
    buildah run "$container" -- sh -c 'ln -s /usr/bin/python3 /usr/local/bin/python; rm -f /usr/lib/python3*/EXTERNALLY-MANAGED'
    buildah commit --quiet "$container" "$base" >/dev/null
}

helm_image() {
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$(readlink -f .venv/bin/helm)" /usr/local/bin/helm >/dev/null
    buildah commit --quiet "$container" localhost/helm >/dev/null
}

image() { # $1 is the target
    set -- "$1" --volume "$authorities:$authorities:ro"
    [ ! -f /etc/pip.conf ] || set -- "$@" --volume /etc/pip.conf:/etc/pip.conf:ro
    target=$1
    shift
    buildah build --quiet --layers --pull-never --network host --build-context helm=container-image://localhost/helm \
        --build-arg REVISION="$revision" "$@" --target "$target" --tag "$target" . >/dev/null
}

run() { # in a new container of image $1
    container=$(buildah from --pull-never "localhost/$1")
    shift
    buildah run --network host "$container" -- "$@"
}

expect() { # that two texts are equal
    [ "$1" = "$2" ] || {
        echo "expected $2, found: $1" >&2
        exit 1
    }
}

check() { # of image $1, as user $2; $3 are its programs besides Python and the wheel's, $4 some of its packages
    root=$(buildah mount "$(buildah from --pull-never "localhost/$1")")
    expect "$(ls "$root/usr/bin" "$root/usr/sbin" "$root/usr/local/bin" | grep -v -e '^python' -e ':$' | sort | xargs)" "$3"
    expect "$(find "$root" -perm -4000 -o -name pip -o -name setuptools -o -name tests -o -path '*/client/models')" ''
    expect "$(run "$1" python -c 'import os; print(os.getuid())')" "$2"
    expect "$(buildah inspect --type image "$1" | sed -n 's/.*"org.opencontainers.image.revision": "\(.*\)".*/\1/p' | sort -u)" "$revision"
    .venv/bin/python -m hack.sbom --root "$root" "build/sbom/$1.cdx.json"
    for package in $4; do
        [ -f "$root/var/lib/dpkg/status.d/$package" ] || expect '' "a record of the Debian package $package"
    done
    expect "$(run "$1" upgrade-manager --version)" "$(.venv/bin/upgrade-manager --version)"
    # The tier `host` imports the toolkit's image from there (docs/real-host.md).
    mkdir -p build/images
    buildah push --quiet "$1" "oci-archive:build/images/$1.tar"
    bytes=$(du -sb "$root" | cut -f 1)
    echo "$1: $(($(stat -c %s "build/images/$1.tar") / 1000000)) MB compressed, $((bytes / 1000000)) MB of files, the base included"
}

upgrade() { # in the root file system $1
    buildah inspect --type image manager >"$work/manager.json"
    export IMAGE_ROOT="$1" IMAGE_CONFIG="$work/manager.json"
    tests upgrade
}

tests() { # of file $1, in namespaces that end with it
    exec unshare --net --mount --pid --fork --mount-proc --kill-child .venv/bin/python -m pytest -q --tier image \
        -p no:cacheprovider --basetemp="$work/pytest-$1" "tests/image/test_$1_in_image.py"
}

programs
# Slower, but of any file system.
buildah info >/dev/null 2>&1 || sed -i 's/overlay/vfs/' "$CONTAINERS_STORAGE_CONF"
wheels
base_image
helm_image
image manager
check manager 65532 'chroot dash env sh' 'ca-certificates coreutils dash libc6 libssl3'
[ "$bytes" -le "$limit" ] || {
    echo "the manager's image has $bytes bytes of files, limit $limit" >&2
    exit 1
}
# Beside the second image: an upgrade waits most of its time.
upgrade "$root" >"$work/upgrade.log" 2>&1 &
upgrade=$!
image toolkit
check toolkit 0 'cat chroot dash env gunzip gzip helm mkdir mount mountpoint nginx sh test umount' 'gzip libc6 mount nginx'
run toolkit helm version --short
expect "$(run toolkit sh -c 'echo list | gzip | cat | gunzip -c')" list
(TOOLKIT_ROOT=$root tests repository)
wait "$upgrade" || {
    cat "$work/upgrade.log" >&2
    exit 1
}
tail -n 1 "$work/upgrade.log"
