"""Plans of the system-upgrade-controller, as both phases create them, and the nodes on which they would not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.phases.test_image_cleanup import NEW, OLD, prepared
from tests.support.cluster.harvester import RELEASE
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SUC_PLANS, UPGRADE_PLANS
from upgrade_manager.pipeline.errors import BadCluster, ForeignObject
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.image_cleanup import ImageCleanup
from upgrade_manager.pipeline.phases.image_preload import ImagePreload
from upgrade_manager.pipeline.phases.plan_jobs import colliding_nodes, prepare_nodes
from upgrade_manager.resources.suc_plan import PlanSettings, image_preload_plan
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester

BOTH = pytest.mark.parametrize("phase", [ImagePreload(), ImageCleanup()], ids=["image-preload", "image-cleanup"])
Either = ImagePreload | ImageCleanup


async def plan_of(cluster: Harvester, phase: Either) -> Any:
    return await cluster.find(SUC_PLANS, PLAN_NAMES[phase.name], "cattle-system")


PLAN_NAMES = {ImagePreload.name: "up-image-preload", ImageCleanup.name: "up-image-cleanup"}


@pytest.mark.rule("workloads: labels of an earlier Plan of the same name are removed before a Plan is created")
@BOTH
async def test_old_plan_labels_are_removed_before_creation(cluster: Harvester, phase: Either) -> None:
    mark = f"plan.upgrade.cattle.io/{PLAN_NAMES[phase.name]}"
    ctx = await prepared(cluster)
    await cluster.nodes("n2", **{mark: "hash"})
    await phase.run(ctx)
    assert mark not in objects.labels(await cluster.find(NODES, "n2"))


@pytest.mark.rule("workloads: a hostname label other than the node's name is reported before a Plan is created")
@BOTH
async def test_node_that_hangs_the_plan_is_reported_before(cluster: Harvester, phase: Either) -> None:
    ctx = await prepared(cluster)
    await cluster.nodes("n2", **{"kubernetes.io/hostname": "other"})
    with pytest.raises(BadCluster, match="Node n2"):
        await phase.run(ctx)
    assert await cluster.names(SUC_PLANS) == []


@pytest.mark.rule("workloads: with no managed node no Plan is created, and a complete one does not count")
@BOTH
async def test_no_managed_nodes_create_no_plan(cluster: Harvester, phase: Either) -> None:
    ctx = await prepared(cluster)
    await cluster.client.delete(NODES, "n1")
    await cluster.nodes("unmanaged", **{"harvesterhci.io/managed": "false"})
    with pytest.raises(BadCluster, match="All nodes lack the label"):
        await phase.run(ctx)
    assert await cluster.names(SUC_PLANS) == []


@pytest.mark.rule("workloads: a Plan is never updated after its creation")
@BOTH
async def test_plan_is_never_edited(cluster: Harvester, phase: Either) -> None:
    """The controller would kill and restart running Jobs."""
    await phase.run(await prepared(cluster))
    before = await plan_of(cluster, phase)
    await cluster.nodes("n2", "n3")
    cluster.files.answers = {OLD: b"a/b:1\na/c:1\n", NEW: b"a/b:2\n"}
    option = MergePatch({"spec": {"imagePreloadOption": {"concurrency": 2}}})
    changed = await cluster.client.patch(UPGRADE_PLANS, "up", option)
    assert isinstance(await phase.run(cluster.context(changed)), Waiting)
    assert await plan_of(cluster, phase) == before


@pytest.mark.rule(
    "pipeline: ImagePreload fails when a Job of the Plan has failed",
    "pipeline: ImageCleanup completes when the Plan has failed, with the condition ImagesNotRemoved",
    "workloads: a Plan has failed when one of its Jobs has Failed=True",
    "workloads: a Plan's Jobs are found by the labels of plan and component",
)
@BOTH
async def test_failed_job_is_found_by_copied_labels(cluster: Harvester, phase: Either) -> None:
    ctx = await prepared(cluster)
    ctx.status.move_node(
        "n1", NodeState.POST_DRAINED if phase.name is ImageCleanup.name else NodeState.IMAGE_PRELOADING
    )
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"osImage": RELEASE["os"]}}
    await cluster.finish(NODES, "n1", "", ready)
    await phase.run(ctx)
    plan = await plan_of(cluster, phase)
    owner = {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "controller": True}
    metadata = {
        "name": "apply-x",
        "namespace": "cattle-system",
        "labels": {**objects.labels(plan), "upgrade.cattle.io/node": "n1"},
        "ownerReferences": [{**owner, "name": objects.name(plan), "uid": objects.uid(plan)}],
    }
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "upgrade", "image": "x"}]}}
    failed = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]
    await cluster.put(JOBS, {"metadata": metadata, "spec": {"template": pod}}, status={"conditions": failed})
    status = {"conditions": [{"type": "Complete", "status": "False", "reason": "SyncJob"}]}
    await cluster.finish(SUC_PLANS, objects.name(plan), "cattle-system", status)
    cause = "Node n1: image preload failed: BackoffLimitExceeded"
    log = "kubectl logs -n cattle-system job/apply-x"
    result, state = (
        (Failed(cause=cause, log=log, node="n1"), "ImagePreloadFailed")
        if phase.name is ImagePreload.name
        else (Completed(), "ImageCleanFailed")
    )
    assert await phase.run(ctx) == result
    assert ctx.status.node_state("n1") == state


@pytest.mark.rule("workloads: a hostname label other than the node's name is reported before a Plan is created")
@pytest.mark.parametrize("hostname", ["n1.example.org", None])
async def test_hostname_other_than_the_name_is_an_error(cluster: Harvester, hostname: str | None) -> None:
    labels = {"kubernetes.io/hostname": hostname} if hostname else {}
    node = {"metadata": {"name": "n1", "labels": labels}}
    ctx = cluster.context(await cluster.plan())
    with pytest.raises(BadCluster, match=r"Node n1: label .* --overwrite node n1 kubernetes\.io/hostname=n1$"):
        await prepare_nodes(ctx, [node], "up-image-preload")


@pytest.mark.rule("workloads: labels of an earlier Plan of the same name are removed before a Plan is created")
@pytest.mark.parametrize("value", ["99e7de4ce98589bc847e", "disabled", ""], ids=["a hash", "disabled", "empty"])
async def test_label_of_an_earlier_plan_is_removed(cluster: Harvester, value: str) -> None:
    await cluster.nodes("n1", "n2", **{"plan.upgrade.cattle.io/up-image-preload": value})
    await cluster.nodes("n3", **{"plan.upgrade.cattle.io/other": value})
    ctx = cluster.context(await cluster.plan())
    for _ in range(2):
        await prepare_nodes(ctx, (await cluster.client.list(NODES)).items, "up-image-preload")
    labels = [key for node in (await cluster.client.list(NODES)).items for key in objects.labels(node)]
    assert [key for key in labels if key.startswith("plan.upgrade")] == ["plan.upgrade.cattle.io/other"]
    assert len(ctx.writes) == 2


async def test_deleted_node_needs_no_label_removed(cluster: Harvester) -> None:
    labels = {"kubernetes.io/hostname": "deleted", "plan.upgrade.cattle.io/up-image-preload": "hash"}
    ctx = cluster.context(await cluster.plan())
    await prepare_nodes(ctx, [{"metadata": {"name": "deleted", "labels": labels}}], "up-image-preload")
    assert ctx.writes == []


@pytest.mark.parametrize("length", [64, 200, 253])
async def test_name_too_long_for_a_label_is_an_error(cluster: Harvester, length: int) -> None:
    node = {"metadata": {"name": "n" * length, "labels": {}}}
    ctx = cluster.context(await cluster.plan())
    with pytest.raises(BadCluster, match=r"Node n+: the system-upgrade-controller .*concurrency to -1"):
        await prepare_nodes(ctx, [node], "up-image-preload")


@pytest.mark.parametrize(
    ("names", "colliding"),
    [
        pytest.param(["n1", "n2"], [], id="plain names"),
        pytest.param(["n1.example.org", "n2.example.org"], [], id="their own first labels"),
        pytest.param(["a", "node.rack-2", "node.rack-1"], ["node.rack-1", "node.rack-2"], id="one first label"),
        pytest.param(["node", "node.rack-2"], ["node", "node.rack-2"], id="with and without a dot"),
        pytest.param([], [], id="no node"),
    ],
)
def test_names_collide_up_to_the_first_dot(names: list[str], colliding: list[str]) -> None:
    assert colliding_nodes({"metadata": {"name": name}} for name in names) == colliding


@pytest.mark.rule("workloads: labels of an earlier Plan of the same name are removed before a Plan is created")
@pytest.mark.parametrize("is_owned", [True, False])
async def test_labels_of_a_plan_that_exists_stay(cluster: Harvester, *, is_owned: bool) -> None:
    await cluster.nodes("n1", **{"plan.upgrade.cattle.io/up-image-preload": "hash"})
    ctx = cluster.context(await cluster.plan())
    other = cluster.context(await cluster.plan("other"))
    settings = PlanSettings(image=ToolkitImage(repository="r", tag="v1"), service_account="a")
    existing = image_preload_plan((ctx if is_owned else other).owner, settings, concurrency=1)
    existing["metadata"]["name"] = "up-image-preload"
    await cluster.put(SUC_PLANS, existing)
    nodes = (await cluster.client.list(NODES)).items
    if is_owned:
        await prepare_nodes(ctx, nodes, "up-image-preload")
    else:
        with pytest.raises(ForeignObject, match="up-image-preload already exists and belongs to UpgradePlan other"):
            await prepare_nodes(ctx, nodes, "up-image-preload")
    assert ctx.writes == []
