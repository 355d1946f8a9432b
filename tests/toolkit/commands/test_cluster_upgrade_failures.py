from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.actors.helm_storage import PENDING, HelmStorage, revision
from hack.faults.rules import LoseRequest, Match, Rule
from tests.support.toolkit.cluster_upgrade import ClusterUpgrade, cluster_upgrade, end_state, finished, services
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, MANAGED_CHARTS, SECRETS
from upgrade_manager.toolkit.charts.fleet_address import ANNOTATION_ADDRESS
from upgrade_manager.toolkit.charts.managed_charts import ANNOTATION_PAUSED
from upgrade_manager.toolkit.run.errors import StepFailed

pytestmark = pytest.mark.sampled

FLEET_LOCAL = "fleet-local"


async def _chart(upgrade: ClusterUpgrade, name: str) -> Object:
    return await upgrade.world.client.get(MANAGED_CHARTS, name, namespace=FLEET_LOCAL)


async def _change(upgrade: ClusterUpgrade, name: str, **spec: Any) -> None:
    await upgrade.world.client.patch(MANAGED_CHARTS, name, MergePatch({"spec": spec}), namespace=FLEET_LOCAL)


async def _failure(upgrade: ClusterUpgrade) -> str:
    """Run the command, which must fail, and return why; nothing that it suspended stays so."""
    with pytest.raises(StepFailed) as error:
        await upgrade.run()
    for chart in (await upgrade.world.client.list(MANAGED_CHARTS)).items:
        assert not objects.spec(chart)["paused"]
        assert ANNOTATION_PAUSED not in objects.annotations_of(chart)
    return str(error.value)


async def test_failing_helm_is_named_and_repeated(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path / "failing") as upgrade:
        upgrade.helm.failures = ["pre-upgrade hooks failed: job failed: BackoffLimitExceeded"]
        assert await _failure(upgrade) == (
            "upgrade-rancher: helm returned 1: "
            "Error: UPGRADE FAILED: pre-upgrade hooks failed: job failed: BackoffLimitExceeded"
        )
        await upgrade.run()
        assert await end_state(upgrade.world.client) == (await finished(tmp_path / "healthy"))[0]


async def test_charts_are_resumed_when_the_pod_is_deleted(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path / "deleted", services(durations={"chart": 60})) as upgrade:
        run = asyncio.create_task(upgrade.run())
        await asyncio.sleep(5)
        assert objects.spec(await _chart(upgrade, "harvester"))["paused"]
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        for chart in (await upgrade.world.client.list(MANAGED_CHARTS)).items:
            assert not objects.spec(chart)["paused"]
            assert objects.annotations_of(chart).keys() <= {ANNOTATION_ADDRESS}


async def test_interrupted_release_of_rancher_is_unblocked(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path / "blocked") as upgrade:
        pending = revision(
            "fleet",
            namespace="cattle-fleet-system",
            number=2,
            status=PENDING,
            chart=("fleet", "109.0.0+up0.15.0"),
            app="0.15.0",
            values={},
        )
        await upgrade.world.client.create(SECRETS, pending)
        await upgrade.run()
        assert any("fleet is pending-upgrade with chart fleet-109" in wait for wait in upgrade.world.steps.waits)
        latest = (await HelmStorage(upgrade.world.client).revisions("fleet", "cattle-fleet-system"))[-1]
        assert latest["info"]["status"] == "deployed"
        assert await end_state(upgrade.world.client) == (await finished(tmp_path / "healthy"))[0]


async def test_chart_that_is_late_fails_and_continues(tmp_path: Path) -> None:
    scenario = services(durations={"chart": 30000})
    async with cluster_upgrade(tmp_path / "late", scenario) as upgrade:
        assert await _failure(upgrade) == (
            "wait-for-rancher-dependencies: not done after 60 min: Helm release cattle-fleet-system/fleet has chart "
            "fleet-108.0.0+up0.14.0 (deployed) instead of fleet-109.0.0+up0.15.0"
        )
        await asyncio.sleep(3 * 3600)
        assert await _failure(upgrade) == (
            "refresh-chart-index: not done after 30 min: ClusterRepo harvester-charts is not downloaded yet: "
            "no reason is reported"
        )
        await asyncio.sleep(3600)
        assert await _failure(upgrade) == (
            "upgrade-harvester-crd: not done after 30 min: ManagedChart fleet-local/harvester-crd 1.8.0 is not ready: "
            "NotReady(1) [Cluster fleet-local/local]"
        )
        assert objects.spec(await _chart(upgrade, "harvester"))["version"] == "1.7.1"
        for _ in range(4):
            await asyncio.sleep(3600)
            try:
                await upgrade.run()
            except StepFailed:
                continue
            break
        assert await end_state(upgrade.world.client) == (await finished(tmp_path / "in-time"))[0]


async def test_only_revision_is_never_removed(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        body = {"metadata": {"labels": {"status": "pending-install"}}}
        name, namespace = "sh.helm.release.v1.rancher.v1", "cattle-system"
        await upgrade.world.client.patch(SECRETS, name, MergePatch(body), namespace=namespace)
        assert "upgrade-rancher: not done after 120 min" in await _failure(upgrade)
        await upgrade.world.client.get(SECRETS, name, namespace=namespace)


@pytest.mark.parametrize("began", [1, 8, 20])
async def test_api_server_is_away_for_minutes(tmp_path: Path, began: float) -> None:
    scenario = services(durations={"chart": 60})
    async with cluster_upgrade(tmp_path / "away", scenario) as upgrade:
        middleware, rule = upgrade.world.simulation.middleware, Rule(match=Match(), action=LoseRequest())

        async def outage() -> None:
            await asyncio.sleep(began)
            middleware.add(rule)
            await asyncio.sleep(400)
            middleware.remove(rule)

        async with asyncio.TaskGroup() as group:
            group.create_task(outage())
            await upgrade.run()
        assert await end_state(upgrade.world.client) == (await finished(tmp_path / "there"))[0]


@pytest.mark.parametrize("name", ["harvester", "harvester-crd", "rancher-monitoring-crd", "rancher-logging-crd"])
async def test_absent_chart_is_named(tmp_path: Path, name: str) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await upgrade.world.client.delete(MANAGED_CHARTS, name, namespace=FLEET_LOCAL)
        with pytest.raises(StepFailed, match=f"^pause-charts: ManagedChart fleet-local/{name} does not exist;"):
            await upgrade.run()


async def test_incomplete_release_is_refused_at_once(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        files = upgrade.world.iso.files
        release = yaml.safe_load(files["/harvester-release.yaml"])
        del release["kubevirt"], release["rancherDependencies"]["fleet"]["app"]
        files["/harvester-release.yaml"] = yaml.safe_dump(release).encode()
        assert await _failure(upgrade) == (
            "wait-for-repository: /harvester-release.yaml: kubevirt is missing; "
            "rancherDependencies.fleet.app is missing; the ISO is corrupt or not a Harvester release"
        )
        assert upgrade.kills.writes == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param(
            "/bundle/common.txt",
            "upgrade-chart-repository: no image list of the ISO names harvester-cluster-repo, "
            "which has Harvester's charts",
            id="chart-repository",
        ),
        pytest.param(
            "/bundle/agent.txt",
            "upgrade-rancher: no image list of the ISO names rancher/system-agent-installer-rancher:v2.14.0, "
            "which has Rancher's chart",
            id="rancher",
        ),
    ],
)
async def test_iso_without_an_image_is_refused(tmp_path: Path, path: str, words: str) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        upgrade.world.iso.files[path] = b"docker.io/rancher/other:v1\n"
        assert await _failure(upgrade) == words


async def test_chart_that_a_user_paused_stays_paused(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await _change(upgrade, "rancher-logging-crd", paused=True)
        await upgrade.run()
        chart = await _chart(upgrade, "rancher-logging-crd")
        assert objects.spec(chart)["paused"]
        assert objects.spec(chart)["version"] == "109.0.0+up6.0.2"
        assert objects.annotations_of(chart) == {}
        assert not objects.spec(await _chart(upgrade, "harvester"))["paused"]


@pytest.mark.parametrize(
    "methods",
    [pytest.param(["LiveMigrate", "Evict"], id="two"), pytest.param([], id="none")],
)
async def test_update_methods_stay_as_the_manager_left_them(tmp_path: Path, methods: list[str]) -> None:
    spec = {"monitorAccount": "operator", "workloadUpdateStrategy": {"workloadUpdateMethods": methods}}
    async with cluster_upgrade(tmp_path) as upgrade:
        await _change(upgrade, "harvester", values={"kubevirt": {"spec": spec}})
        await upgrade.run()
        assert objects.spec(await _chart(upgrade, "harvester"))["values"] == {"kubevirt": {"spec": spec}}


async def test_cluster_without_kubeovn_is_upgraded(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await upgrade.world.client.delete(MANAGED_CHARTS, "kubeovn-operator-crd", namespace=FLEET_LOCAL)
        await upgrade.run()
        assert not any("kubeovn-operator-crd" in write for write in upgrade.kills.writes)


async def test_event_router_follows_the_release(tmp_path: Path) -> None:
    content = "eventTailer:\n  image: rancher/harvester-eventrouter:v0.3.3 # comment\nfluentd: {}\n"
    async with cluster_upgrade(tmp_path) as upgrade:
        namespace = "cattle-logging-system"
        patch = MergePatch({"spec": {"valuesContent": content}})
        await upgrade.world.client.patch(ADDONS, "rancher-logging", patch, namespace=namespace)
        await upgrade.run()
        found = objects.spec(await upgrade.world.client.get(ADDONS, "rancher-logging", namespace=namespace))
        assert found["valuesContent"] == content.replace("v0.3.3", "v0.5.0")
