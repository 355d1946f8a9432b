"""The taint of a drain that a Job adds after the end of its plan: it passes to the next plan before it is there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hack.demo.breaks import BREAKS
from hack.simulation import Simulation
from tests.pipeline.ending.test_orphaned_jobs import ACTIVE, COMPLETE, until_job
from tests.pipeline.ending.test_passing_on import KEEPING, TAINTED, taints
from tests.support.cluster.simulate import RepairableScenario
from tests.support.managers.upgrade import node_states, started
from upgrade_manager.api.keys import JobType
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import EVENTS, JOBS, PROVISIONING_CLUSTERS
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.ending import passing_on
from upgrade_manager.pipeline.settings import left_entries
from upgrade_manager.resources.jobs import node_job

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester

pytestmark = pytest.mark.sampled


@pytest.mark.rule("nodes: a taint that a Job may still add after its plan passes to the next plan")
@pytest.mark.parametrize(
    ("job_type", "status", "passes"),
    [
        pytest.param(JobType.PRE_DRAIN, ACTIVE, True, id="before its taint"),
        pytest.param(JobType.PRE_DRAIN, COMPLETE, False, id="complete"),
        pytest.param(JobType.POST_DRAIN, ACTIVE, False, id="after the drain"),
    ],
)
async def test_entry_of_a_taint_that_may_come_passes_on(
    cluster: Harvester, job_type: JobType, status: dict[str, Any], *, passes: bool
) -> None:
    await cluster.nodes("n1", "n2")
    ctx = cluster.context(await cluster.plan(status={"ledger": TAINTED}))
    await cluster.put(JOBS, node_job(ctx.owner, ctx.job_settings, node="n2", job_type=job_type), status=status)
    found = await passing_on.owed(ctx)
    assert ledger.entries(ctx) == ([TAINTED[1]] if passes else [])
    assert [step.command for step in found] == ["kubectl taint node n2 kubevirt.io/drain-"] * passes
    assert all(step.text.startswith("The Job of node n2 still runs, and may add the taint") for step in found)


@pytest.mark.rule("nodes: a taint that a Job may still add after its plan passes to the next plan")
async def test_taint_after_a_deletion_is_removed_by_the_next_plan() -> None:
    async with Simulation(RepairableScenario.of(**KEEPING)) as simulation, started(simulation) as stage:
        await stage.until_recorded("ClusterUpgraded")
        # The Job waits for the volume before it adds the taint.
        broken = await BREAKS["degraded-volume"](stage.client)
        await stage.until_node("PreDraining")
        (node,) = [name for name, state in node_states(await stage.plan()).items() if state == "PreDraining"]
        job = f"upgrade-node-upgrade-pre-drain-{node}"
        await until_job(stage, job, "ready")
        await stage.delete()
        assert await taints(simulation) == []
        cluster = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
        assert [entry["node"] for entry in left_entries.read(cluster) if entry["kind"] == "Taint"] == [node]
        events = (await stage.client.list(EVENTS, namespace="fleet-local")).items
        assert len([one for one in events if "may add the taint" in one["message"]]) == 1
        await broken.mend()
        await until_job(stage, job, "succeeded")
        assert await taints(simulation) == [node]
        following = replace(stage, name="next")
        await following.create_plan()
        done = await following.succeed()
        assert (await taints(simulation), objects.status(done)["ledger"]) == ([], [])
