"""The examples of docs/gitops on the real API server, which validates each field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import tiers
from tests.support.cluster.kubectl import Cluster

FOLDER = Path(__file__).parents[2] / "docs/gitops"
#: By file: the namespace that the tool has, and what is created.
EXAMPLES = {
    "argocd.yaml": ("argocd", ["configmap/argocd-cm"]),
    "flux.yaml": ("flux-system", ["kustomization.kustomize.toolkit.fluxcd.io/harvester-upgrade"]),
    "fleet/upgrade-v1.8.0.yaml": ("fleet-local", []),
}
PLAN = "upgradeplan.management.harvesterhci.io/upgrade-v1.8.0"
KUSTOMIZATIONS = "kustomizations.kustomize.toolkit.fluxcd.io"

pytestmark = [pytest.mark.real_loop, pytest.mark.assets]


@pytest.mark.parametrize("name", EXAMPLES)
async def test_example_is_applied_without_drift(cluster: Cluster, name: str) -> None:
    namespace, others = EXAMPLES[name]
    definition = tiers.assets().crds / f"{KUSTOMIZATIONS}.json"
    await cluster.succeed("apply", "--server-side", "-f", str(definition))
    await cluster.succeed("wait", "--for=condition=Established", "--timeout=30s", f"crd/{KUSTOMIZATIONS}")
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await cluster.succeed("apply", "-f", "-", stdin=place)
    command = ("apply", "--server-side", "--validate=strict", "-f", str(FOLDER / name))
    applied = await cluster.succeed(*command)
    assert sorted(applied.lines) == sorted(f"{one} serverside-applied" for one in [*others, PLAN])
    assert (await cluster.kubectl("diff", "--server-side", "-f", str(FOLDER / name))).code == 0
    state = await cluster.succeed("get", PLAN, "-o", "jsonpath={.status.display.state}")
    assert state.out == "Pending"
