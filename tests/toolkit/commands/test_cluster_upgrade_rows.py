"""The rows of release/migrations in runs of the whole command."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hack.faults.rules import LoseRequest, Match, Refuse, Rule
from tests.support.cluster.simulate import Simulate
from tests.support.toolkit.cluster_upgrade import (
    ClusterUpgrade,
    cluster_upgrade,
    end_state,
    finished,
    services,
    services_world,
)
from tests.support.toolkit.toolkit import PLAN
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS, RANCHER_FEATURES, SECRETS, SETTINGS, UPGRADE_PLANS
from upgrade_manager.release.migrations import generic, v1_7_to_v1_8
from upgrade_manager.toolkit.charts.chart_repository import upgrade_repository
from upgrade_manager.toolkit.charts.cluster_resources import HELM_CHART_CONFIGS, RANCHER_CLUSTERS, RANCHER_SETTINGS
from upgrade_manager.toolkit.charts.managed_charts import KUBEOVN_CRD
from upgrade_manager.toolkit.charts.rancher import RANCHER
from upgrade_manager.toolkit.commands.cluster_upgrade import STEPS
from upgrade_manager.toolkit.run.errors import StepFailed, StepTimedOut
from upgrade_manager.toolkit.run.steps import run_steps

#: Kinds that the rows read, with the verb, and the step that reads each first.
READS = (
    ("get", "helmchartconfigs.helm.cattle.io", "keep-multus"),
    ("get", "settings.harvesterhci.io", "pin-overcommit-config"),
    ("get", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "remove-capi-webhooks"),
    ("get", "validatingwebhookconfigurations.admissionregistration.k8s.io", "remove-capi-webhooks"),
    ("list", "nodes", "upgrade-rancher"),
    ("get", "features.management.cattle.io", "check-rancher-features"),
    ("get", "secrets", "create-aggregation-secret"),
    ("get", "configmaps", "record-fleet-address"),
    ("get", "clusters.cluster.x-k8s.io", "settle-cluster-before-rancher"),
    ("get", "clusters.fleet.cattle.io", "redeploy-fleet-agent"),
    ("list", "pods", "redeploy-fleet-agent"),
    ("get", "services", "apply-cdi-definition"),
    ("get", "customresourcedefinitions.apiextensions.k8s.io", "apply-cdi-definition"),
    ("get", "addons.harvesterhci.io", "upgrade-addons"),
)
KINDS = pytest.mark.parametrize(("verb", "kind", "step"), READS, ids=[f"{verb}-{kind}" for verb, kind, _ in READS])
pytestmark = pytest.mark.sampled


async def _from(upgrade: ClusterUpgrade, version: str) -> None:
    patch = MergePatch({"status": {"previousVersion": version}})
    await upgrade.world.client.patch(UPGRADE_PLANS, PLAN, patch, subresource="status")


async def _is_unchanged(upgrade: ClusterUpgrade, kind: str) -> bool:
    if kind == "secrets":
        # Helm writes Secrets, too.
        return await upgrade.world.client.find(SECRETS, "stv-aggregation", namespace="cattle-system") is None
    return not any(f"/{kind.partition('.')[0]}" in write for write in upgrade.kills.writes)


#: A cluster of v1.8, and the release of the provisional pair.
PROVISIONAL = {
    "software": {"harvester": "v1.8.2", "rancher": "v2.14.2", "kubernetes": "v1.35.4+rke2r1"},
    "release": {"harvester": "v1.9.0", "rancher": "v2.15.0", "kubernetes": "v1.36.3+rke2r1"},
}


async def test_rows_of_the_provisional_pair_are_carried_out_once(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path, services(**PROVISIONAL)) as upgrade:
        await upgrade.run()
        client = upgrade.world.client
        values = await upgrade.world.context().helm.values(RANCHER)
        assert values["features"] == (
            "multi-cluster-management=false,multi-cluster-management-agent=false,"
            "managed-system-upgrade-controller=false,crt-token-ttl-rotation=false"
        )
        assert (await client.get(RANCHER_FEATURES, "multi-cluster-management"))["status"]["default"] is False
        setting = await client.get(RANCHER_SETTINGS, "tls-internal-cn-allowed-services")
        assert setting["value"] == "kube-system/ingress-expose,kube-system/rke2-traefik"
        cluster = await client.get(RANCHER_CLUSTERS, "local")
        assert objects.annotations_of(cluster)["provisioning.cattle.io/administrated"] == "true"
        assert await client.find(HELM_CHART_CONFIGS, "rke2-traefik", namespace="kube-system") is not None
        # Rows of the pair before are not this upgrade's.
        assert await client.find(SECRETS, "stv-aggregation", namespace="cattle-system") is None
        assert not objects.text(await client.get(SETTINGS, "overcommit-config"), "value")
        upgrade.kills.writes.clear()
        await upgrade.run()
        assert upgrade.kills.writes == []


@pytest.mark.servers
async def test_steps_of_rows_are_carried_out_once(tmp_path: Path, simulate: Simulate) -> None:
    rows = {*generic.ROWS, *v1_7_to_v1_8.ROWS} - {generic.KUBEOVN, generic.FLEET}
    steps = [step for step in STEPS if step.row in rows and step.act is not None]
    # Without what waits for controllers: Fleet deploys charts and its agent, and Harvester enabled add-ons.
    async with services_world(tmp_path, simulate=simulate, addons=()) as world:
        await upgrade_repository(world.context())
        await world.client.delete(MANAGED_CHARTS, KUBEOVN_CRD, namespace="fleet-local")
        for begun in (len(steps), 0):
            world.steps.lines.clear()
            await run_steps(steps, world.context(), world.steps)
            assert sum(not line.startswith("skipped") for line in world.steps.lines) == begun


@KINDS
async def test_refused_read_is_not_taken_for_absence(tmp_path: Path, verb: str, kind: str, step: str) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await _from(upgrade, "v1.7.1")
        refuse = Refuse(status=403, reason="Forbidden")
        upgrade.world.simulation.middleware.add(Rule(match=Match(verbs=(verb,), resource=kind), action=refuse))
        with pytest.raises(StepFailed, match=rf"^{step}: .*Forbidden"):
            await upgrade.run()
        assert await _is_unchanged(upgrade, kind)


@KINDS
@pytest.mark.parametrize(("status", "reason"), [(503, "ServiceUnavailable"), (409, "Conflict")])
async def test_read_that_fails_for_minutes_is_repeated(
    tmp_path: Path, verb: str, kind: str, step: str, status: int, reason: str
) -> None:
    async with cluster_upgrade(tmp_path / "refused") as upgrade:
        await _from(upgrade, "v1.7.1")
        middleware = upgrade.world.simulation.middleware
        rule = Rule(match=Match(verbs=(verb,), resource=kind), action=Refuse(status=status, reason=reason))
        middleware.add(rule)
        async with asyncio.TaskGroup() as group:
            group.create_task(upgrade.run())
            await asyncio.sleep(500)
            assert any(wait.startswith(f"{step}: ") and "refused" in wait for wait in upgrade.world.steps.waits)
            assert await _is_unchanged(upgrade, kind)
            middleware.remove(rule)
        assert await end_state(upgrade.world.client) == (await finished(tmp_path / "healthy"))[0]


@KINDS
async def test_read_that_never_answers_ends_the_step(tmp_path: Path, verb: str, kind: str, step: str) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await _from(upgrade, "v1.7.1")
        upgrade.world.simulation.middleware.add(Rule(match=Match(verbs=(verb,), resource=kind), action=LoseRequest()))
        with pytest.raises(StepTimedOut, match=rf"^{step}: not done after \d+ min: "):
            await upgrade.run()
        assert await _is_unchanged(upgrade, kind)
