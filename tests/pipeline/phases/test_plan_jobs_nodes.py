"""Plans of the system-upgrade-controller, as both phases create them, and the nodes on which they would not run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.phases.test_image_cleanup import NEW, OLD, prepared
from tests.support.cluster.harvester import RECORDED, RELEASE
from tests.support.cluster.survey_world import OWN
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SUC_PLANS, UPGRADE_PLANS
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.errors import BadCluster, ForeignObject
from upgrade_manager.pipeline.host_changes import SKIP
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases import host_plans
from upgrade_manager.pipeline.phases.image_cleanup import ImageCleanup
from upgrade_manager.pipeline.phases.image_preload import ImagePreload
from upgrade_manager.pipeline.phases.plan_jobs import colliding_nodes, prepare_nodes
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.suc_plan import PlanSettings, image_preload_plan
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

    Begun = tuple[ReconcileContext, PhaseResult]
    Begin = Callable[[Harvester], Awaitable[Begun]]

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


async def preload(cluster: Harvester, **spec: Any) -> Begun:
    """Begin the Plan of ImagePreload; `spec` adds to the plan's."""
    status = {"releaseMetadata": RELEASE, "previousVersion": "v1.6.1", "currentPhase": "ImagePreloading"}
    toolkit = OWN if spec else RECORDED
    plan = await cluster.plan(spec={"version": "v1.7.0", **spec}, status=status, toolkit=toolkit)
    ctx = cluster.context(plan)
    return ctx, await ImagePreload().run(ctx)


async def survey(cluster: Harvester) -> Begun:
    return await preload(cluster, imagePreloadOption={"concurrency": -1})


async def change_hosts(cluster: Harvester) -> Begun:
    ctx = cluster.context(await cluster.plan(status={"currentPhase": "NodeUpgrading"}))
    return ctx, await host_plans.apply(ctx, SKIP)


#: By component: the begin of each Plan that needs no list of images.
BEGUN = {"image-preload": preload, "survey": survey, "skip-on": change_hosts}


@pytest.mark.rule("workloads: an object that another owner controls is never adopted")
@pytest.mark.parametrize(("component", "begin"), BEGUN.items(), ids=BEGUN)
@pytest.mark.parametrize("earlier", [True, False], ids=["of an earlier plan", "without an owner"])
async def test_foreign_plan_is_not_adopted(cluster: Harvester, component: str, begin: Begin, *, earlier: bool) -> None:
    """Taking its marks off would make it run again."""
    mark = f"plan.upgrade.cattle.io/up-{component}"
    await cluster.nodes("n1", **{mark: "hash"})
    settings = PlanSettings(image=ToolkitImage(repository="r", tag="t"), service_account="a")
    found = image_preload_plan(Owner(name="up", uid="old"), settings, concurrency=1)
    found["metadata"]["name"] = f"up-{component}"
    if not earlier:
        found["metadata"] = {"name": f"up-{component}", "namespace": "cattle-system"}
    await cluster.put(SUC_PLANS, found)
    with pytest.raises(ForeignObject, match=f"Plan cattle-system/up-{component} already exists and "):
        await begin(cluster)
    assert mark in objects.labels(await cluster.find(NODES, "n1"))


@pytest.mark.rule("workloads: a hostname label other than the node's name is reported before a Plan is created")
@pytest.mark.parametrize("begin", [survey, change_hosts])
async def test_other_hostname_is_reported_before_each_plan(cluster: Harvester, begin: Begin) -> None:
    await cluster.nodes("n1", **{"kubernetes.io/hostname": "other"})
    with pytest.raises(BadCluster, match="Node n1: label"):
        await begin(cluster)
    assert await cluster.names(SUC_PLANS) == []


@pytest.mark.parametrize(
    ("begin", "reason"), [(survey, "NodeSurveySkipped"), (change_hosts, "HostChangeSkipped")], ids=["survey", "skip-on"]
)
async def test_long_node_name_skips_the_plan_with_a_warning(cluster: Harvester, begin: Begin, reason: str) -> None:
    await cluster.nodes("n" * 64, **{"kubernetes.io/hostname": "n"})
    ctx, result = await begin(cluster)
    assert isinstance(result, Completed)
    [(found, message)] = cluster.recorder.recorded
    assert (found, "names of up to 63 characters" in message) == (reason, True)
    assert (await cluster.names(SUC_PLANS), ledger.entries(ctx)) == ([], [])


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
