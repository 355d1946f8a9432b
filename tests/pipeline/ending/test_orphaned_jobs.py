"""Jobs that run when their plan ends: they run to their end, and the next plan waits for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.harvester import Harvester
from tests.support.cluster.simulate import RepairableScenario, Simulate
from tests.support.managers.upgrade import UpgradeRun, condition, node_states, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import Component, JobType
from upgrade_manager.blockers.wait import JobWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import JOBS, NODES, UPGRADE_PLANS
from upgrade_manager.pipeline.ending import orphaned_jobs
from upgrade_manager.pipeline.ending.cleanup import clean_up
from upgrade_manager.pipeline.selections import UPGRADE_JOBS
from upgrade_manager.resources.jobs import node_job, restore_job

pytestmark = pytest.mark.sampled

PLACE = "harvester-system"
COMPLETE: Object = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
FAILED: Object = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}], "failed": 3}
ACTIVE: Object = {"active": 1, "ready": 1}


async def jobs(stage: UpgradeRun) -> list[Object]:
    """Return the Jobs of upgrades."""
    found = (await stage.client.list(JOBS, namespace=PLACE)).items
    return [job for job in found if objects.name(job).startswith("upgrade-")]


async def until_job(stage: UpgradeRun, name: str, field: str, *, pause: float = 0.5) -> Object:
    """Wait until the Job has that field in its status."""

    async def poll() -> Object | None:
        found = [job for job in await jobs(stage) if objects.name(job) == name]
        return next((job for job in found if objects.status(job).get(field)), None)

    result: Object = await eventually(poll, seconds=600.0, pause=pause)
    return result


async def post_draining(stage: UpgradeRun) -> tuple[str, Object]:
    """Return the node whose post-drain Pod runs, and its Job."""
    (node,) = [name for name, state in node_states(await stage.plan()).items() if state == "PostDraining"]
    return node, await until_job(stage, f"upgrade-node-upgrade-post-drain-{node}", "ready")


async def deleted_while_running(stage: UpgradeRun, propagation: str = "Background") -> tuple[str, Object]:
    """Delete the plan while a post-drain Pod runs; return the node and the Job before."""
    await stage.until_node("PostDraining")
    found = await post_draining(stage)
    await stage.delete(propagation)
    return found


#: On the real server, the Pods run for seconds, in which a busy machine deletes the plan.
SLOW: dict[str, Any] = {"durations": {"post_drain": 400, "manifests": 200}}


COMPONENT_JOB = "upgrade-cluster-upgrade"
WAITS = "The deletion waits for at most an hour, because"
WAITING = "of an UpgradePlan that has ended still runs (attempt 1 of "


async def has_waited(stage: UpgradeRun, name: str) -> None:
    """Check that the next plan of the same name waits for the Job, and succeeds."""
    await stage.create_plan()
    plan = await stage.until_plan(lambda plan: WAITING in condition(plan, "Available")[2])
    assert condition(plan, "Available")[2].startswith(f"Job {PLACE}/{name} {WAITING}")
    assert "queuedSince" in objects.status(plan)
    assert [reason for reason, _ in await stage.warnings()] == ["ConcurrentUpgradeBlocked"]
    await stage.succeed()
    assert await jobs(stage) == []


@pytest.mark.full
@pytest.mark.rule("nodes: the next plan waits for the Jobs of a deleted plan, and names them")
async def test_next_plan_waits_for_a_post_drain(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**SLOW)) as simulation, started(simulation) as stage:
        node, before = await deleted_while_running(stage)
        await has_waited(stage, objects.name(before))
        # The orphaned Job's reboot is the node's only one.
        assert simulation.hosts.of(node).boots == 1
        infos = [found["status"]["nodeInfo"] for found in (await stage.client.list(NODES)).items]
        assert {info["osImage"] for info in infos} == {f"Harvester {simulation.scenario.release.harvester}"}


@pytest.mark.rule("pipeline: a deletion waits for the Job of the cluster upgrade, for at most an hour")
@pytest.mark.full
async def test_deletion_waits_for_a_cluster_upgrade(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**SLOW)) as simulation, started(simulation) as stage:
        await stage.until("ClusterUpgrading")
        await until_job(stage, COMPONENT_JOB, "ready")
        await stage.client.delete(UPGRADE_PLANS, stage.name)
        plan = await stage.until_plan(lambda plan: WAITS in condition(plan, "Progressing")[2])
        assert condition(plan, "Progressing")[2].startswith(f"{WAITS} Job {PLACE}/{COMPONENT_JOB} (attempt 1 of 3)")
        assert await stage.until("deleted") == "deleted"
        assert await jobs(stage) == []
        await stage.create_plan()
        await stage.succeed()
        assert stage.ledger.names("jobs").count(COMPONENT_JOB) == 2


@pytest.mark.rule("nodes: of a deleted plan, suspended and finished Jobs and those without a Pod are removed")
@pytest.mark.parametrize(
    ("status", "changes", "stays"),
    [
        pytest.param(ACTIVE, {}, True, id="running"),
        pytest.param({**ACTIVE, "failed": 1}, {}, True, id="running again"),
        pytest.param(None, {"suspended": True}, False, id="suspended"),
        pytest.param(None, {}, False, id="without a Pod"),
        pytest.param({"failed": 1}, {}, False, id="between two attempts"),
        pytest.param(COMPLETE, {}, False, id="complete"),
        pytest.param(FAILED, {}, False, id="failed"),
    ],
)
async def test_only_running_jobs_stay(
    cluster: Harvester, status: Object | None, changes: dict[str, Any], *, stays: bool
) -> None:
    ctx = cluster.context(await cluster.plan(status={"currentPhase": "NodeUpgrading"}))
    made = node_job(ctx.owner, ctx.job_settings, node="n1", job_type=JobType.POST_DRAIN, **changes)
    await cluster.put(JOBS, made, status=status)
    for _ in range(2):
        await clean_up(ctx, keep_failed_jobs=False)
    # A later plan of the same name.
    later = cluster.context({**ctx.raw, "metadata": {**objects.metadata(ctx.raw), "uid": "later"}})
    await clean_up(later, keep_failed_jobs=False)
    found = [await cluster.find(JOBS, objects.name(made), PLACE)] if stays else []
    assert await cluster.names(JOBS, PLACE) == [objects.name(made)] * stays
    # A lower limit could end the running attempt.
    assert [objects.spec(one)["backoffLimit"] for one in found] == [2] * stays


@pytest.mark.parametrize("keep_failed_jobs", [True, False])
async def test_restore_job_keeps_its_attempts(cluster: Harvester, *, keep_failed_jobs: bool) -> None:
    phases = [{"phase": "NodeUpgrading", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
    status = {"currentPhase": "NodeUpgrading", "phaseTransitionTimestamps": phases}
    ctx = cluster.context(await cluster.plan(status=status))
    await cluster.put(JOBS, restore_job(ctx.owner, ctx.job_settings, node="n1"))
    await clean_up(ctx, keep_failed_jobs=keep_failed_jobs)
    (name,) = await cluster.names(JOBS, PLACE)
    found = await cluster.find(JOBS, name, PLACE)
    assert objects.owner_uid(found) == ""
    assert ctx.owner.owns(found)
    assert objects.spec(found)["backoffLimit"] == 2
    assert objects.labels(found)["management.harvesterhci.io/upgrade-component"] == Component.NODE_UPGRADE


@pytest.mark.rule("blockers: a Job of a plan that has ended is named when it hangs")
@pytest.mark.parametrize(
    ("job_type", "usual"),
    [pytest.param(JobType.POST_DRAIN, 3600, id="post-drain"), pytest.param(JobType.PRE_DRAIN, 1800, id="pre-drain")],
)
async def test_orphaned_job_is_a_wait_with_its_end(cluster: Harvester, job_type: JobType, usual: float) -> None:
    ended = cluster.context(await cluster.plan(name="ended"))
    await cluster.put(JOBS, node_job(ended.owner, ended.job_settings, node="n1", job_type=job_type), status=ACTIVE)
    ctx = cluster.context(await cluster.plan())
    found = await orphaned_jobs.wait(ctx, await ctx.watch(UPGRADE_JOBS))
    assert found is not None
    (wait,) = found.waits
    assert isinstance(wait, JobWait)
    name = f"ended-node-upgrade-{job_type}-n1"
    assert (wait.name, wait.node, wait.expected) == (name, "n1", usual)
    assert wait.way_out == f"kubectl delete job -n {PLACE} {name}"


FAILURE_TARGET = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}
LOST = "failed (DeadlineExceeded), but its Pod does not end; check that its node is up"


@pytest.mark.rule("blockers: a Job of a plan that has ended is named when it hangs")
@pytest.mark.parametrize(
    ("status", "state"),
    [
        pytest.param(ACTIVE, "attempt 1 of 3", id="running"),
        pytest.param({**ACTIVE, "conditions": [FAILURE_TARGET]}, LOST, id="its Pod does not terminate"),
    ],
)
async def test_orphaned_job_is_described_like_others(cluster: Harvester, status: Object, state: str) -> None:
    ended = cluster.context(await cluster.plan(name="ended"))
    job = node_job(ended.owner, ended.job_settings, node="n1", job_type=JobType.POST_DRAIN)
    await cluster.put(JOBS, job, status=status)
    ctx = cluster.context(await cluster.plan())
    found = await orphaned_jobs.wait(ctx, await ctx.watch(UPGRADE_JOBS))
    assert found is not None
    name = f"{PLACE}/ended-node-upgrade-post-drain-n1"
    assert found.message == f"Job {name} of an UpgradePlan that has ended: {state}"
