from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hack import scenario as scenarios
from tests.support.cluster.harvester import RELEASE
from tests.support.managers.upgrade import condition, started
from upgrade_manager.blockers.wait import JobWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.cluster_upgrade import ClusterUpgrade
from upgrade_manager.resources.jobs import JobSettings, cluster_upgrade_job
from upgrade_manager.resources.owner import Owner, plan_uid
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from tests.support.cluster.simulate import Simulate

PLACE = "harvester-system"
NAMED = f"{PLACE}/up-cluster-upgrade"
FIRST = f"Job {NAMED}: attempt 1 of 3"


def met(type_: str, **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": "True", **more}]}


@pytest.mark.rule("pipeline: ClusterUpgrade runs upgrade_manifests.sh in one Job")
async def test_job_is_created_once(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    for _ in range(2):
        waiting = await ClusterUpgrade().run(ctx)
        assert isinstance(waiting, Waiting)
        assert (waiting.message, waiting.detail) == (FIRST, "waiting for its Pod")
    assert await cluster.names(JOBS) == ["up-cluster-upgrade"]


ATTEMPT = Waiting(waits=(), message=FIRST, detail="running since 00:00 UTC on 1 January")
SECOND = replace(ATTEMPT, message=f"Job {NAMED}: attempt 2 of 3; the last attempt failed")
OVER = Failed(
    cause="The upgrade of the components failed: BackoffLimitExceeded: it was tried 3 times",
    log=f"kubectl logs -n {NAMED.replace('/', ' job/')}",
)


@pytest.mark.rule(
    "pipeline: ClusterUpgrade completes when the Job is Complete",
    "pipeline: ClusterUpgrade fails when the Job is Failed",
)
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        pytest.param({"failed": 1, "active": 1, "ready": 1}, SECOND, id="retry"),
        pytest.param({**met("SuccessCriteriaMet"), "active": 1, "ready": 1}, ATTEMPT, id="nearly complete"),
        pytest.param(met("Complete"), Completed(), id="complete"),
        pytest.param(met("Failed", reason="BackoffLimitExceeded", message="it was tried 3 times"), OVER, id="failed"),
    ],
)
async def test_finished_job_finishes_the_phase(cluster: Harvester, status: dict[str, Any], outcome: Any) -> None:
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await ClusterUpgrade().run(ctx)
    started = {"startTime": "2026-01-01T00:00:00Z"}
    await cluster.finish(JOBS, "up-cluster-upgrade", PLACE, started | status)
    result = await ClusterUpgrade().run(ctx)
    assert (replace(result, waits=()) if isinstance(result, Waiting) else result) == outcome


@pytest.mark.rule("blockers: a Rancher that does not run is named while the cluster upgrade waits, with its remedy")
async def test_job_that_runs_needs_rancher(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await ClusterUpgrade().run(ctx)
    await cluster.finish(JOBS, "up-cluster-upgrade", PLACE, {"active": 1, "ready": 1})
    result = await ClusterUpgrade().run(ctx)
    assert isinstance(result, Waiting)
    assert [wait.controllers for wait in result.waits if isinstance(wait, JobWait)] == [("rancher",)]


@pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
@pytest.mark.servers
@pytest.mark.parametrize(
    ("fault", "text"),
    [
        pytest.param({"message": "no space left"}, "attempt 2 of 3; last failure: no space left;", id="attempt fails"),
        pytest.param({"hang": True}, "attempt 1 of 3; running since ", id="it takes its time"),
    ],
)
@pytest.mark.thin
async def test_progress_of_the_job_is_reported(simulate: Simulate, fault: dict[str, Any], text: str) -> None:
    faults = [{"work": "manifests", **fault}]
    async with (
        simulate(scenarios.load("three-nodes").changed(faults=faults)) as simulation,
        started(simulation) as stage,
    ):
        await stage.until("ClusterUpgrading")
        plan = await stage.until_plan(lambda plan: text in condition(plan, "Progressing")[2], seconds=60)
    message = condition(plan, "Progressing")[2]
    assert message.startswith(f"Job {PLACE}/upgrade-cluster-upgrade: {text.removesuffix(';')}")
    assert condition(plan, "Degraded") == ("False", "ReconcileSuccess", "")


async def test_complete_job_of_an_earlier_plan_does_not_count(cluster: Harvester) -> None:
    """A plan that was deleted without its clean-up leaves its Jobs, for a while."""
    settings = JobSettings(image=ToolkitImage(repository="r", tag="t"), service_account="a")
    old = cluster_upgrade_job(Owner(name="up", uid="old"), settings)
    await cluster.put(JOBS, old, status=met("Complete"))
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    assert isinstance(await ClusterUpgrade().run(ctx), Waiting)
    assert plan_uid(await cluster.find(JOBS, objects.name(old), PLACE)) == ctx.owner.uid
