from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.harvester import RELEASE
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, SUC_PLANS
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.image_preload import ImagePreload

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester

STATUS = {"releaseMetadata": RELEASE, "previousVersion": "v1.6.1"}
MARK = "plan.upgrade.cattle.io/up-image-preload"


@pytest.mark.rule(
    "api: force skips the version check before ImagePreload",
    "pipeline: ImagePreload is entered only for an allowed version step",
    "pipeline: a pair of releases whose steps are not known is refused",
    "pipeline: spec.force skips the version check",
)
@pytest.mark.parametrize("force", [False, True], ids=["guarded", "forced"])
@pytest.mark.parametrize(
    ("current", "target", "minimum", "denied"),
    [
        pytest.param("v1.7.1", "v1.8.0", "v1.7.1", "", id="supported"),
        pytest.param("v1.6.1", "v1.7.0", "v1.6.2", "upgrade to v1.6.2 or later first", id="minimum version"),
        pytest.param("v1.6.1", "v1.5.0", "", "downgrades are not supported", id="downgrade"),
        pytest.param("v1.6.1", "v1.6.1", "", "Nothing to do: node n1 runs v1.6.1", id="the running version"),
        pytest.param("v1.7.0", "v1.7.0", "", "", id="nodes that a failed upgrade left behind"),
        pytest.param("v1.8.0", "v1.9.0", "", "the steps from v1.8 to v1.9 are provisional", id="provisional pair"),
    ],
)
async def test_eligibility_is_checked_unless_forced(
    cluster: Harvester, current: str, target: str, minimum: str, denied: str, *, force: bool
) -> None:
    await cluster.nodes("n1")
    release = RELEASE | {"harvester": target} | ({"minUpgradableVersion": minimum} if minimum else {})
    status = {"releaseMetadata": release, "previousVersion": current}
    ctx = cluster.context(await cluster.plan(spec={"version": "v1.7.0", "force": force}, status=status))
    refused = await ImagePreload().enter(ctx)
    if force or not denied:
        assert refused is None
    else:
        assert refused is not None
        assert refused.cause.startswith((f"upgrade from {current} to {target} is not allowed: ", "Nothing to do: "))
        assert denied in refused.cause


@pytest.mark.rule(
    "api: with concurrency unset or 0 all managed nodes preload at once",
    "api: a positive concurrency is used up to the node count",
    "api: a negative concurrency skips preloading",
    "pipeline: with a negative concurrency ImagePreload only surveys the nodes",
    "workloads: the preload Plan's concurrency is the resolved one",
    "workloads: the controller never gets a concurrency of 0 or below",
)
@pytest.mark.parametrize(
    ("option", "concurrency"),
    [
        pytest.param(None, 3, id="no option"),
        pytest.param({}, 3, id="an empty option"),
        pytest.param({"concurrency": 0}, 3, id="zero, which the controller takes for nothing to do"),
        pytest.param({"concurrency": 1}, 1, id="one"),
        pytest.param({"concurrency": 2}, 2, id="as given"),
        pytest.param({"concurrency": 3}, 3, id="the node count"),
        pytest.param({"concurrency": 4}, 3, id="above the node count"),
        pytest.param({"concurrency": 2**63 - 1}, 3, id="as large as a number can be"),
        pytest.param({"concurrency": -1}, None, id="negative"),
        pytest.param({"concurrency": -(2**63)}, None, id="as negative as a number can be"),
    ],
)
async def test_concurrency_is_resolved(
    cluster: Harvester, option: dict[str, int] | None, concurrency: int | None
) -> None:
    await cluster.nodes("n1", "n2", "n3")
    spec = {"version": "v1.7.0"} | ({} if option is None else {"imagePreloadOption": option})
    outcome = await ImagePreload().run(cluster.context(await cluster.plan(spec=spec, status=STATUS)))
    if concurrency is None:
        assert isinstance(outcome, Waiting)
        assert await cluster.names(SUC_PLANS) == ["up-survey"]
    else:
        plan = await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system")
        assert plan["spec"]["concurrency"] == concurrency


@pytest.mark.rule("pipeline: the message reports that colliding node names preload one at a time")
@pytest.mark.parametrize(("concurrency", "is_reported"), [(0, True), (2, True), (1, False)])
async def test_colliding_names_preload_one_at_a_time(
    cluster: Harvester, concurrency: int, *, is_reported: bool
) -> None:
    await cluster.nodes("node.rack-1", "node.rack-2")
    spec = {"version": "v1.7.0", "imagePreloadOption": {"concurrency": concurrency}}
    ctx = cluster.context(await cluster.plan(spec=spec, status=STATUS))
    note = "; one node at a time, because the names node.rack-1, node.rack-2 are equal up to the first dot"
    for _ in range(2):
        result = await ImagePreload().run(ctx)
        assert isinstance(result, Waiting)
        assert result.message.endswith(note) == is_reported
    assert (await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system"))["spec"]["concurrency"] == 1


@pytest.mark.rule("pipeline: a preload Plan that runs is finished after the concurrency is set below 0")
async def test_running_plan_is_finished_when_preload_is_disabled(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    raw = await cluster.plan(status=STATUS)
    await ImagePreload().run(cluster.context(raw))
    disabled = {"version": "v1.7.0", "imagePreloadOption": {"concurrency": -1}}
    ctx = cluster.context(raw | {"spec": disabled})
    result = await ImagePreload().run(ctx)
    assert isinstance(result, Waiting)
    assert "before spec.imagePreloadOption.concurrency was set below 0, and is finished first" in result.message
    await cluster.complete_plan("up-image-preload", "n1")
    assert await ImagePreload().run(ctx) == Completed()


@pytest.mark.rule("pipeline: ImagePreload runs upgrade_node.sh prepare on every managed node by a SUC Plan")
async def test_plan_is_created_once(cluster: Harvester) -> None:
    await cluster.nodes("n1", "n2", "n3")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    for _ in range(2):
        assert isinstance(await ImagePreload().run(ctx), Waiting)
    spec = (await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system"))["spec"]
    assert (spec["concurrency"], spec["version"]) == (3, "v1.7.0")
    assert spec["upgrade"]["image"] == "rancher/harvester-upgrade-toolkit"


@pytest.mark.rule("pipeline: ImagePreload completes when the Plan's Complete condition is True")
async def test_complete_plan_completes_the_phase(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await ImagePreload().run(ctx)
    await cluster.complete_plan("up-image-preload", "n1")
    assert await ImagePreload().run(ctx) == Completed()


async def test_failed_plan_fails_the_phase(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await ImagePreload().run(ctx)
    failed = {"type": "Complete", "status": "False", "reason": "JobFailed", "message": "why"}
    await cluster.finish(SUC_PLANS, "up-image-preload", "cattle-system", {"conditions": [failed]})
    assert await ImagePreload().run(ctx) == Failed(cause="image preload failed: why")


@pytest.mark.rule("nodes: a managed label that is missing for a moment changes nothing")
async def test_node_without_the_label_is_not_left_out(cluster: Harvester) -> None:
    async def label(value: str | None) -> None:
        labels = {"harvesterhci.io/managed": value}
        await cluster.client.patch(NODES, "n2", MergePatch({"metadata": {"labels": labels}}))

    problem = r"^Node n2 would be left out: it lacks the label harvesterhci\.io/managed=true\. Add it: kubectl label"
    await cluster.nodes("n1", "n2")
    for node in ("n1", "n2"):
        await cluster.machine(node)
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await label(None)
    with pytest.raises(BadCluster, match=problem):
        await ImagePreload().run(ctx)
    await label("true")
    assert isinstance(await ImagePreload().run(ctx), Waiting)
    await label(None)
    await cluster.complete_plan("up-image-preload", "n1")
    with pytest.raises(BadCluster, match=problem):
        await ImagePreload().run(ctx)
    await label("true")
    waiting = await ImagePreload().run(ctx)
    assert isinstance(waiting, Waiting)
    assert "Images loaded on 1 of 2 nodes" in waiting.message
    assert ctx.status.node_state("n2") is None
    await cluster.complete_plan("up-image-preload", "n2")
    assert await ImagePreload().run(ctx) == Completed()
