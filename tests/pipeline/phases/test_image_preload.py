from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.test_version import CASES
from tests.support.harvester import RELEASE
from upgrade_manager.api.keys import MANAGED_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SUC_PLANS, UPGRADE_PLANS
from upgrade_manager.pipeline.errors import BadCluster, ForeignObject
from upgrade_manager.pipeline.phases.base import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.image_preload import ImagePreload, resolve_concurrency
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.suc_plan import PlanSettings, image_preload_plan
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from tests.support.harvester import Harvester

STATUS = {"releaseMetadata": RELEASE, "previousVersion": "v1.6.1"}
MARK = "plan.upgrade.cattle.io/up-image-preload"


@pytest.mark.rule("workloads: the controller never gets a concurrency of 0 or below")
@pytest.mark.parametrize(
    ("asked", "resolved"),
    [
        pytest.param(0, 3, id="nothing said means all"),
        pytest.param(1, 1, id="one"),
        pytest.param(3, 3, id="as many as there are"),
        pytest.param(10, 3, id="no more than there are"),
        pytest.param(2**63, 3, id="however many"),
        pytest.param(-1, None, id="below zero: no preload"),
    ],
)
def test_concurrency_of_the_plan(asked: int, resolved: int | None) -> None:
    assert resolve_concurrency(asked, nodes=3) == resolved


@pytest.mark.rule(
    "api: force skips the version check before ImagePreload", "pipeline: spec.force skips the version check"
)
@pytest.mark.parametrize(
    ("previous", "minimum", "force", "cause"),
    [
        pytest.param("v1.6.1", "v1.6.0", False, "", id="a step that is allowed"),
        pytest.param("v1.6.1", None, False, "", id="without a minimum"),
        pytest.param("v1.5.0", "v1.6.0", False, "upgrade from v1.5.0 to v1.7.0 is not allowed", id="too old"),
        pytest.param("v1.5.0", "v1.6.0", True, "", id="too old, but forced"),
        pytest.param("v1.8.0", None, False, "upgrade from v1.8.0 to v1.7.0 is not allowed", id="a step back"),
        pytest.param("", None, False, "upgrade from", id="a version that cannot be read"),
    ],
)
async def test_version_guard_precedes_the_phase(
    cluster: Harvester,
    previous: str,
    minimum: str | None,
    force: bool,  # noqa: FBT001  # a table
    cause: str,
) -> None:
    release = RELEASE | ({"minUpgradableVersion": minimum} if minimum else {})
    status = {"releaseMetadata": release, "previousVersion": previous}
    ctx = cluster.context(await cluster.plan(spec={"version": "v1.7.0", "force": force}, status=status))
    refused = await ImagePreload().enter(ctx)
    assert (refused is None) == (cause == "")
    if refused is not None:
        assert refused.cause.startswith(cause)


@pytest.mark.rule(
    "api: force skips the version check before ImagePreload",
    "pipeline: ImagePreload is entered only for an allowed version step",
    "pipeline: spec.force skips the version check",
)
@pytest.mark.parametrize("force", [False, True], ids=["guarded", "forced"])
@pytest.mark.parametrize(
    ("current", "target", "minimum", "denied"),
    [pytest.param(*row[1:4], row[5], id=str(row[0])) for row in CASES if row[4]],
)
async def test_eligibility_is_checked_unless_forced(
    cluster: Harvester,
    current: str,
    target: str,
    minimum: str,
    denied: str | None,
    force: bool,  # noqa: FBT001  # a table
) -> None:
    """The whole case table, from what earlier phases have put into the status."""
    status = {
        "releaseMetadata": {**RELEASE, "harvester": target, "minUpgradableVersion": minimum},
        "previousVersion": current,
    }
    ctx = cluster.context(await cluster.plan(spec={"version": "v1.7.0", "force": force}, status=status))
    refused = await ImagePreload().enter(ctx)
    if force or denied is None:
        assert refused is None
    else:
        assert refused is not None
        assert denied in refused.cause


@pytest.mark.rule(
    "api: with concurrency unset or 0 all managed nodes preload at once",
    "api: a positive concurrency is used up to the node count",
    "api: a negative concurrency skips preloading",
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
        assert outcome == Completed()
        assert await cluster.names(SUC_PLANS) == []
    else:
        plan = await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system")
        assert plan["spec"]["concurrency"] == concurrency


async def test_colliding_names_preload_one_at_a_time(cluster: Harvester) -> None:
    await cluster.nodes("node.rack-1")
    await cluster.nodes("node.rack-2")
    await ImagePreload().run(cluster.context(await cluster.plan(status=STATUS)))
    assert (await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system"))["spec"]["concurrency"] == 1


@pytest.mark.rule("pipeline: ImagePreload runs upgrade_node.sh prepare on every managed node by a SUC Plan")
async def test_plan_is_created_once(cluster: Harvester) -> None:
    await cluster.nodes("n1", "n2", "n3")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    for _ in range(2):
        assert isinstance(await ImagePreload().run(ctx), Waiting)
    plan = await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system")
    assert plan["spec"]["concurrency"] == 3
    assert plan["spec"]["version"] == "v1.7.0"
    assert plan["spec"]["upgrade"]["image"] == "rancher/harvester-upgrade-toolkit"


@pytest.mark.rule("workloads: a Plan is never updated after its creation")
async def test_plan_is_never_edited(cluster: Harvester) -> None:
    """Neither by another concurrency nor by nodes that join: the controller would kill and restart running Jobs."""
    await cluster.nodes("n1", "n2")
    await ImagePreload().run(cluster.context(await cluster.plan(status=STATUS)))
    before = await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system")
    await cluster.nodes("n3")
    option = MergePatch({"spec": {"imagePreloadOption": {"concurrency": 1}}})
    changed = await cluster.client.patch(UPGRADE_PLANS, "up", option)
    assert isinstance(await ImagePreload().run(cluster.context(changed)), Waiting)
    assert await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system") == before


@pytest.mark.rule(
    "api: a negative concurrency skips preloading",
    "pipeline: ImagePreload completes immediately with a negative concurrency",
)
async def test_negative_concurrency_skips_the_phase(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    spec = {"version": "v1.7.0", "imagePreloadOption": {"concurrency": -1}}
    assert await ImagePreload().run(cluster.context(await cluster.plan(spec=spec, status=STATUS))) == Completed()
    assert await cluster.names(SUC_PLANS) == []


@pytest.mark.rule("workloads: labels of an earlier Plan of the same name are removed before a Plan is created")
async def test_old_plan_labels_are_removed_before_creation(cluster: Harvester) -> None:
    await cluster.nodes("n1", **{MARK: "hash"})
    await ImagePreload().run(cluster.context(await cluster.plan(status=STATUS)))
    assert MARK not in objects.labels(await cluster.find(NODES, "n1"))


@pytest.mark.rule("workloads: a hostname label other than the node's name is reported before a Plan is created")
async def test_node_that_hangs_the_plan_is_reported_before(cluster: Harvester) -> None:
    await cluster.nodes("n1", **{"kubernetes.io/hostname": "other"})
    with pytest.raises(BadCluster, match="Node n1"):
        await ImagePreload().run(cluster.context(await cluster.plan(status=STATUS)))
    assert await cluster.names(SUC_PLANS) == []


@pytest.mark.rule("workloads: with no managed node no Plan is created, and a complete one does not count")
async def test_no_managed_nodes_create_no_plan(cluster: Harvester) -> None:
    await cluster.nodes("n1", **{MANAGED_LABEL: "false"})
    with pytest.raises(BadCluster, match="no Node carries the label"):
        await ImagePreload().run(cluster.context(await cluster.plan(status=STATUS)))
    assert await cluster.names(SUC_PLANS) == []


async def test_foreign_plan_is_not_adopted(cluster: Harvester) -> None:
    """Taking its marks off would make it run again."""
    await cluster.nodes("n1", **{MARK: "hash"})
    settings = PlanSettings(image=ToolkitImage(repository="r", tag="t"), service_account="a")
    await cluster.put(SUC_PLANS, image_preload_plan(Owner(name="up", uid="old"), settings, concurrency=1))
    with pytest.raises(ForeignObject):
        await ImagePreload().run(cluster.context(await cluster.plan(status=STATUS)))
    assert MARK in objects.labels(await cluster.find(NODES, "n1"))


@pytest.mark.rule("pipeline: ImagePreload completes when the Plan's Complete condition is True")
@pytest.mark.parametrize(
    ("complete", "outcome"),
    [
        pytest.param({"status": "True", "reason": "Complete"}, Completed(), id="complete"),
        pytest.param(
            {"status": "False", "reason": "JobFailed", "message": "why"},
            Failed(cause="image preload failed: why"),
            id="failed",
        ),
    ],
)
async def test_finished_plan_finishes_the_phase(cluster: Harvester, complete: dict[str, str], outcome: Any) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await ImagePreload().run(ctx)
    status = {"conditions": [{"type": "Complete", **complete}]}
    await cluster.finish(SUC_PLANS, "up-image-preload", "cattle-system", status)
    assert await ImagePreload().run(ctx) == outcome


@pytest.mark.rule(
    "pipeline: ImagePreload fails when a Job of the Plan has failed",
    "workloads: a Plan's Jobs are found by the labels of plan and component",
)
async def test_failed_job_is_found_by_copied_labels(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await ImagePreload().run(ctx)
    plan = await cluster.find(SUC_PLANS, "up-image-preload", "cattle-system")
    reference = {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "name": "up-image-preload", "controller": True}
    metadata = {
        "name": "apply-x",
        "namespace": "cattle-system",
        "labels": {**objects.labels(plan), "upgrade.cattle.io/node": "n1"},
        "ownerReferences": [{**reference, "uid": objects.uid(plan)}],
    }
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "upgrade", "image": "x"}]}}
    failed = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]
    job = {"metadata": metadata, "spec": {"template": pod}}
    await cluster.put(JOBS, job, status={"conditions": failed})
    assert await ImagePreload().run(ctx) == Failed(
        cause="image preload failed: Job cattle-system/apply-x failed: BackoffLimitExceeded"
    )
