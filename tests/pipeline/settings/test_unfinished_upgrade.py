"""The annotation of Rancher's cluster about an upgrade that nodes have not reached yet."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.settings.test_rancher import again, recorded, start, stored
from tests.support.cluster.harvester import RELEASE
from tests.support.cluster.simulate import SECOND, RepairableScenario, Simulate, fault
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, condition, started
from upgrade_manager.api.keys import ANNOTATION_LEDGER, ANNOTATION_UNFINISHED_UPGRADE, FLEET_LOCAL
from upgrade_manager.api.ledger import LedgerKind, new_entry
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, PROVISIONING_CLUSTERS, SETTINGS, UPGRADE_PLANS, VERSIONS
from upgrade_manager.pipeline.outcome import Completed, Failed
from upgrade_manager.pipeline.phases.image_preload import ImagePreload
from upgrade_manager.pipeline.phases.initialize import Initialize
from upgrade_manager.pipeline.settings import unfinished_upgrade
from upgrade_manager.pipeline.settings.giving_back import give_back
from upgrade_manager.release.migrations import pairs
from upgrade_manager.release.migrations.pair import Pair, Standing
from upgrade_manager.release.unfinished import UnfinishedUpgrade

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the steps between the releases of these tests be known."""
    added = Pair(current=(1, 6), target=(1, 7), standing=Standing.KNOWN)
    monkeypatch.setattr(pairs, "PAIRS", (added, *pairs.PAIRS[1:]))


OWN = UnfinishedUpgrade(previous="v1.6.1", release=RELEASE["harvester"], os=RELEASE["os"])


async def kept(cluster: Harvester) -> UnfinishedUpgrade | None:
    return UnfinishedUpgrade.of(await stored(cluster))


@pytest.mark.rule("nodes: an unfinished release is kept on Rancher's cluster until every node runs it")
async def test_patch_that_starts_the_upgrade_keeps_it(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    ctx.status["previousVersion"] = "v1.6.1"
    await start(ctx)
    assert await kept(cluster) == OWN
    early = await again(cluster)
    await give_back(early, keep_strategy=False)
    assert await kept(cluster) == OWN


@pytest.mark.rule("nodes: an unfinished release is kept on Rancher's cluster until every node runs it")
async def test_patch_that_ends_the_upgrade_removes_it(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    ctx.status["previousVersion"] = "v1.6.1"
    await start(ctx)
    ended = await again(cluster)
    ended.status.record("NodeUpgraded")
    await give_back(ended, keep_strategy=False)
    assert objects.annotations_of(await stored(cluster)) == {}


async def ending(cluster: Harvester, *phases: str, annotation: str | None = None) -> ReconcileContext:
    """Return a plan that ends early after these phases."""
    annotations = {ANNOTATION_UNFINISHED_UPGRADE: annotation} if annotation else {}
    metadata = {"name": "local", "namespace": FLEET_LOCAL, "annotations": annotations}
    await cluster.put(PROVISIONING_CLUSTERS, {"metadata": metadata, "spec": {}})
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE, "previousVersion": "v1.6.1"}))
    for phase in phases:
        ctx.status.record(phase)
    return ctx


@pytest.mark.rule("nodes: an unfinished release is kept on Rancher's cluster until every node runs it")
@pytest.mark.parametrize(
    ("phases", "annotation", "expected"),
    [
        pytest.param(["ImagePreloaded"], None, None, id="before the cluster's upgrade"),
        pytest.param(["ClusterUpgrading"], None, OWN, id="in the cluster's upgrade"),
        pytest.param(["ClusterUpgrading", "NodeUpgrading"], "{}", OWN, id="in the nodes' upgrade"),
        pytest.param(["ClusterUpgrading", "NodeUpgrading"], OWN.annotation(), OWN, id="again"),
        pytest.param(["ClusterUpgrading", "NodeUpgrading", "NodeUpgraded"], None, None, id="after the nodes' upgrade"),
    ],
)
async def test_early_end_keeps_it(
    cluster: Harvester, phases: list[str], annotation: str | None, expected: UnfinishedUpgrade | None
) -> None:
    ctx = await ending(cluster, *phases, annotation=annotation)
    await unfinished_upgrade.keep(ctx)
    assert await kept(cluster) == expected


async def test_end_without_a_cluster_is_not_held_up(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE, "currentPhase": "ClusterUpgrading"}))
    ctx.status.record("ClusterUpgrading")
    await unfinished_upgrade.keep(ctx)
    await unfinished_upgrade.forget(ctx)
    assert ctx.writes == []


@pytest.mark.rule("nodes: an unfinished release is kept on Rancher's cluster until every node runs it")
@pytest.mark.parametrize("annotation", [OWN.annotation(), None])
async def test_single_node_removes_it(cluster: Harvester, annotation: str | None) -> None:
    ctx = await ending(cluster, annotation=annotation)
    await unfinished_upgrade.forget(ctx)
    assert objects.annotations_of(await stored(cluster)) == {}
    assert len(ctx.writes) == bool(annotation)


async def test_single_node_records_what_a_deleted_plan_left(cluster: Harvester) -> None:
    left = new_entry(LedgerKind.STOPPED_VM, "ns", "vm", object_="VirtualMachine ns/vm", since="2026-01-01T00:00:00Z")
    ctx = await ending(cluster, annotation=None)
    annotations = {ANNOTATION_LEDGER: json.dumps([left])}
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await cluster.client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace=FLEET_LOCAL)
    await unfinished_upgrade.forget(ctx)
    assert objects.annotations_of(await stored(cluster)) == {}
    plan = await cluster.client.get(UPGRADE_PLANS, ctx.owner.name)
    assert objects.status(plan)["ledger"] == [left]


async def behind(cluster: Harvester, *, os: str, spec: dict[str, Any] | None = None) -> ReconcileContext:
    """Return a plan after one that has begun v1.7.0, whose second node runs that OS."""
    metadata: Object = {"name": "local", "namespace": FLEET_LOCAL}
    metadata["annotations"] = {ANNOTATION_UNFINISHED_UPGRADE: OWN.annotation()}
    await cluster.put(PROVISIONING_CLUSTERS, {"metadata": metadata, "spec": {}})
    await cluster.put(SETTINGS, {"metadata": {"name": "server-version"}, "value": "v1.7.0"})
    for name in ("v1.7.0", "v1.7.1", "v1.8.0"):
        place = {"name": name, "namespace": "harvester-system"}
        await cluster.put(VERSIONS, {"metadata": place, "spec": {"isoURL": "https://x/a.iso"}})
    await cluster.nodes("n1", "n2")
    for node, image in (("n1", RELEASE["os"]), ("n2", os)):
        status = objects.status(await cluster.find(NODES, node))
        await cluster.finish(NODES, node, "", {**status, "nodeInfo": {"osImage": image}})
    return cluster.context(await cluster.plan(spec=spec or {"version": "v1.7.0"}))


@pytest.mark.rule(
    "nodes: an unfinished release is kept on Rancher's cluster until every node runs it",
    "nodes: while nodes are behind, only the release that was begun or a patch of it is accepted",
)
@pytest.mark.parametrize(
    ("version", "os", "previous", "is_accepted"),
    [
        pytest.param("v1.7.0", "Harvester v1.6.1", "v1.6.1", True, id="the release"),
        pytest.param("v1.7.1", "Harvester v1.6.1", "v1.6.1", True, id="a patch"),
        pytest.param("v1.8.0", "Harvester v1.6.1", "v1.6.1", False, id="another release"),
        pytest.param("v1.8.0", RELEASE["os"], "v1.7.0", True, id="no node behind"),
    ],
)
async def test_next_plan_upgrades_from_the_version_before(
    cluster: Harvester, version: str, os: str, previous: str, *, is_accepted: bool
) -> None:
    ctx = await behind(cluster, os=os, spec={"version": version})
    result = await Initialize().run(ctx)
    assert ctx.status["previousVersion"] == previous
    refusal = (
        "The upgrade from v1.6.1 to v1.7.0 has begun, and n2 does not run v1.7.0 yet. Until then only v1.7.0 or a "
        "patch of it is accepted, not v1.8.0"
    )
    failed = Failed(cause=refusal, advice="Create a plan for that release", immutable="spec.version")
    assert result == (Completed() if is_accepted else failed)


@pytest.mark.rule("nodes: while nodes are behind, only the release that was begun or a patch of it is accepted")
@pytest.mark.parametrize(("release", "is_accepted"), [("v1.7.1", True), ("v1.8.0", False)])
@pytest.mark.parametrize("force", [False, True])
async def test_release_of_an_image_is_checked(
    cluster: Harvester, release: str, *, is_accepted: bool, force: bool
) -> None:
    ctx = await behind(cluster, os="Harvester v1.6.1", spec={"image": "iso", "force": force})
    assert await Initialize().run(ctx) == Completed()
    ctx.status["releaseMetadata"] = {**RELEASE, "harvester": release}
    assert (await ImagePreload().enter(ctx) is None) == is_accepted


async def fail(stage: UpgradeRun) -> None:
    await stage.fail()


async def delete(stage: UpgradeRun) -> None:
    await stage.until_recorded("NodeUpgrading")
    await stage.delete()


@pytest.mark.full
@pytest.mark.rule(
    "nodes: an unfinished release is kept on Rancher's cluster until every node runs it",
    "nodes: while nodes are behind, only the release that was begun or a patch of it is accepted",
)
@pytest.mark.parametrize("end", [fail, delete])
@pytest.mark.parametrize("scenario", ["three-nodes", "one-node"])
@pytest.mark.thin
async def test_next_plan_removes_the_images_of_the_version_before(simulate: Simulate, scenario: str, end: Any) -> None:
    work = "single-node-upgrade" if scenario == "one-node" else "pre-drain"
    found = RepairableScenario.of(scenario, **fault(work, "node-0" if scenario == "one-node" else SECOND))
    async with simulate(found) as simulation, started(simulation) as stage:
        await end(stage)
        found.repair()
        following = replace(stage, name="next")
        await following.create_plan(BY_IMAGE if end is delete else BY_VERSION)
        plan = await following.succeed()
        assert objects.status(plan)["previousVersion"] == "v1.7.1"
        assert condition(plan, "Progressing")[2].startswith("Upgraded from v1.7.1 to v1.8.0")
        assert await following.events("ImageCleanupSkipped") == []
        local = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace=FLEET_LOCAL)
        assert ANNOTATION_UNFINISHED_UPGRADE not in objects.annotations_of(local)
