#!/bin/sh
# Deletes all UpgradePlans while the manager, which removes their finalizers, still runs. The webhook refuses it during an
# upgrade.
set -eu

if kubectl get crd upgradeplans.management.harvesterhci.io >/dev/null 2>&1; then
    kubectl delete upgradeplans --all
fi
