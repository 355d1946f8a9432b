"""Plans that go on after a failure: one row for each phase and each Job of a node that can fail."""

from __future__ import annotations

import pytest

from tests.pipeline.test_failures import FAILURES, Failure
from tests.support.cluster.simulate import RepairableScenario, Simulate
from tests.support.managers.upgrade import UpgradeRun, node_states, started

#: The ways to fail that a mend outside the plan ends.
_MENDED = {name: failure for name, failure in FAILURES.items() if failure.kept}


def repeated(stage: UpgradeRun, *, before: int) -> list[str]:
    """Return the names of Jobs and Plans that the second attempt has created."""
    made = stage.ledger.created[before:]
    return [name for path, name in made if path.endswith(("/jobs", "/plans"))]


@pytest.mark.servers
@pytest.mark.parametrize("failure", _MENDED.values(), ids=_MENDED)
async def test_attempt_goes_on_where_the_plan_failed(simulate: Simulate, failure: Failure) -> None:
    scenario = RepairableScenario.of(**failure.faults)
    async with simulate(scenario) as simulation, started(simulation) as stage:
        failed = await stage.fail()
        before = len(stage.ledger.created)
        done = {node for node, state in node_states(failed).items() if state == "PostDrained"}
        scenario.repair()
        await stage.patch(spec={"attempt": 2})
        assert await stage.until("Succeeded", "Failed") == "Failed"
        await stage.until("NodeUpgrading", "ClusterUpgrading", "ImagePreloading")
        plan = await stage.succeed()
        made = repeated(stage, before=before)
        assert all(name.endswith("-a2") for name in made)
        assert not any(node in name for node in done for name in made if "node-upgrade" in name)
        assert plan["status"]["attempt"] == 2
        assert [entry["attempt"] for entry in plan["status"]["attempts"]] == [1, 2]
        assert stage.ledger.conflicts == []
