#!/bin/sh
# Builds the wheel, installs it with nothing but its declared dependencies into an empty environment, and starts it
# against a simulated cluster.
# Dependencies have the versions of .venv.
set -eu
cd "$(dirname "$0")/.."
. hack/await.sh

certificate=$PWD/deploy/webhook/certificate.yaml
work=$(mktemp -d)
cluster='' manager=''
trap 'kill $manager $cluster 2>/dev/null || true; wait; rm -rf "$work"' EXIT
# dash runs no EXIT trap when a signal ends it.
trap 'exit 143' TERM INT

unset PYTHONPATH
PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_DISABLE_PIP_VERSION_CHECK

hack/build_wheel.sh "$work/dist"
.venv/bin/python -m pip freeze --exclude-editable >"$work/versions.txt"
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --constraint "$work/versions.txt" "$work"/dist/*.whl

.venv/bin/python -m hack.cluster --scenario one-node --install-crds --kubeconfig "$work/kubeconfig" \
    >"$work/cluster.log" 2>&1 &
cluster=$!

cd "$work/venv"
bin/python -m pip check
bin/upgrade-manager --version
bin/upgrade-manager run --help >help.txt
# The manager imports it with its first plan.
bin/python -c "import upgrade_manager.pipeline.reconciler_factory"

await "$cluster" '^ready' "$work/cluster.log"
kubectl --kubeconfig "$work/kubeconfig" create -f "$certificate"
# The webhook's certificate is the last part of the start, after the connection, the CRD and the caches.
bin/upgrade-manager run --kubeconfig "$work/kubeconfig" --log-format json --health-probe-bind-address 127.0.0.1:0 \
    --metrics-bind-address 127.0.0.1:0 --webhook-bind-address 127.0.0.1:0 >"$work/manager.log" 2>&1 &
manager=$!
await "$manager" 'certificate stored' "$work/manager.log"
kill "$manager"
wait "$manager"
manager=''
