#!/bin/sh
# Builds both images by buildah on a Debian machine that reaches no container registry, as root, and starts them against a
# simulated cluster. Two bases differ from a build elsewhere: Python is Debian's, and helm is the one of `make helm`.
set -eu
cd "$(dirname "$0")/.."
. hack/await.sh

#: What a node pulls, in bytes.
limit=120000000
#: The name and the version of the base that the Dockerfile asks for.
base=docker.io/library/python:$(sed -n 's/^ARG PYTHON=//p' Dockerfile)-slim
authorities=/etc/ssl/certs/ca-certificates.crt
certificate=$PWD/deploy/webhook/certificate.yaml
work=$(mktemp -d)
cluster='' manager=''
trap 'kill $manager $cluster 2>/dev/null || true; wait; buildah rm --all >/dev/null; rm -rf "$work"' EXIT

# A store apart from the user's: nothing stays behind.
export BUILDAH_ISOLATION=chroot CONTAINERS_STORAGE_CONF="$work/storage.conf"
unset STORAGE_DRIVER
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' "$work/store" "$work/run" >"$CONTAINERS_STORAGE_CONF"

programs() { # installs what is missing
    command -v buildah mmdebstrap >/dev/null && return
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah mmdebstrap crun >/dev/null
}

sources() { # the machine's own, in either format
    find /etc/apt -name '*.sources' -o -name 'sources.list' | head -n 1
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
        "$@" --target "$target" --tag "$target" . >/dev/null
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

check() { # of image $1, as user $2
    root=$(buildah mount "$(buildah from --pull-never "localhost/$1")")
    expect "$(find "$root"/usr/bin "$root"/usr/sbin "$root"/usr/local/bin "$root"/opt/venv/bin -name 'apt*' -o -name 'dpkg*' \
        -o -name 'pip*' -o -name gcc -o -name cc -o -name perl)" ''
    expect "$(find "$root/opt" \( -name tests -o -path '*/kubernetes_asyncio/client/models' \))" ''
    expect "$(run "$1" python -c 'import os; print(os.getuid())')" "$2"
    expect "$(run "$1" upgrade-manager --version)" "$(.venv/bin/upgrade-manager --version)"
    buildah push --quiet "$1" "oci-archive:$work/$1.tar"
    echo "$1: $(($(stat -c %s "$work/$1.tar") / 1000000)) MB compressed, $(du -sm "$root" | cut -f 1) MB unpacked"
}

programs
# Slower, but of any file system.
buildah info >/dev/null 2>&1 || sed -i 's/overlay/vfs/' "$CONTAINERS_STORAGE_CONF"
base_image
helm_image
image manager
check manager 65532
[ "$(stat -c %s "$work/manager.tar")" -le "$limit" ]
image toolkit
check toolkit 0
run toolkit helm version --short

.venv/bin/python -m hack.cluster --scenario one-node --install-crds --kubeconfig "$work/kubeconfig" >"$work/cluster.log" 2>&1 &
cluster=$!
await "$cluster" '^ready' "$work/cluster.log"
kubectl --kubeconfig "$work/kubeconfig" create -f "$certificate"
container=$(buildah from --pull-never localhost/manager)
cp "$work/kubeconfig" "$(buildah mount "$container")/tmp/kubeconfig"
chmod a+r "$(buildah mount "$container")/tmp/kubeconfig"
buildah run --network host "$container" -- upgrade-manager run --kubeconfig /tmp/kubeconfig --log-format json \
    --health-probe-bind-address 127.0.0.1:0 --metrics-bind-address 127.0.0.1:0 --webhook-bind-address 127.0.0.1:0 \
    >"$work/manager.log" 2>&1 &
manager=$!
# The webhook's certificate is the last part of the start.
await "$manager" 'certificate stored' "$work/manager.log"
