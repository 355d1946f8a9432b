"""The command `upgrade-manager retry`, as a process with a kubeconfig."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hack.simulation import Simulation
from tests.support.cluster.served import served
from tests.support.cluster.sessions import session
from tests.support.managers.displayed import MANIFEST
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.cli.plan_change import change_plan
from upgrade_manager.cli.retry import requesting
from upgrade_manager.cli.session import CommandError
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

_REACHED = PHASE_VALUES[: PHASE_VALUES.index("NodeUpgrading") + 1]
_TIMES = [{"phase": phase, "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"} for phase in [*_REACHED, "Failed"]]
_STATES = {
    "node-0": {"state": "PostDrained"},
    "node-1": {"state": "ImagePreloaded"},
    "node-2": {"state": "PostDrainFailed"},
}
_LATER = "the upgrade of the components, the upgrade of node-0"
LINES = [
    "Attempt 2 of demo goes on with phase NodeUpgrade",
    f"Not repeated: the download of the ISO, the preload of images, {_LATER}",
    "Repeated: the failed Job of node-2",
    "Then: node-1",
    "Watch it: upgrade-manager status demo --watch",
]
HELD = [
    "Attempt 2 of demo waits, because spec.paused is true. To begin it: upgrade-manager continue demo",
    "It then goes on with phase NodeUpgrade",
]


_TIME = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
POINT = {"type": "Paused", "status": "True", "message": "Paused", **_TIME}
_PAUSED = "demo is paused: only a plan that has failed has a next attempt"
WAYS = {
    "Paused": f"{_PAUSED}. Remove spec.paused: upgrade-manager continue demo",
    "PauseAfter": f"{_PAUSED}. Remove spec.nodeUpgradeOption.pauseAfter: upgrade-manager continue demo",
    "PauseBefore": f"{_PAUSED}. Let node-1 go on: upgrade-manager continue demo node-1",
}


@pytest.mark.parametrize(
    ("paused", "reason"), [(True, "Paused"), (True, "PauseAfter"), (False, "PauseAfter"), (False, "PauseBefore")]
)
def test_paused_plan_is_continued_and_not_retried(reason: str, *, paused: bool) -> None:
    conditions = [{**POINT, "reason": reason}]
    nodes = {**_STATES, "node-1": {"state": "ImagePreloaded", "holds": "Drain"}} if reason == "PauseBefore" else _STATES
    status = {"currentPhase": "NodeUpgrading", "conditions": conditions, "nodeUpgradeStatuses": nodes}
    plan = {"metadata": {"name": "demo"}, "spec": {"paused": paused}, "status": status}
    with pytest.raises(CommandError) as error:
        requesting(plan)
    assert str(error.value) == WAYS["Paused" if paused else reason]


QUEUE = {"type": "Available", "status": "False", "reason": "ConcurrentUpgradeBlocked", "message": "UpgradePlan b runs"}
_REFUSED = "only a plan that has failed has a next attempt"


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        pytest.param(
            {"conditions": [{**QUEUE, **_TIME}], "queuedSince": "2026-01-01T00:00:00Z", "display": {"state": "Queued"}},
            f"demo is Pending: {_REFUSED}. It is in the queue: UpgradePlan b runs",
            id="queued",
        ),
        pytest.param({"currentPhase": "CleaningUp"}, f"demo is Running: {_REFUSED}", id="last phase"),
        pytest.param({}, f"demo is Pending: {_REFUSED}", id="not accepted"),
    ],
)
def test_plan_that_does_not_hold_is_not_called_paused(status: dict[str, object], shown: str) -> None:
    with pytest.raises(CommandError) as error:
        requesting({"metadata": {"name": "demo"}, "spec": {"paused": True}, "status": status})
    assert str(error.value) == shown


@pytest.mark.parametrize("phase", ["Initializing", "ISODownloaded", "NodeUpgrading", "NodeUpgraded"])
def test_pause_that_is_not_recorded_is_continued_and_not_retried(phase: str) -> None:
    with pytest.raises(CommandError) as error:
        requesting({"metadata": {"name": "demo"}, "spec": {"paused": True}, "status": {"currentPhase": phase}})
    shown = f"demo is Running, and is to be paused: {_REFUSED}. Remove spec.paused: upgrade-manager continue demo"
    assert str(error.value) == shown


def test_plan_that_has_succeeded_is_not_called_paused() -> None:
    plan = {"metadata": {"name": "demo"}, "spec": {"paused": True}, "status": {"currentPhase": "Succeeded"}}
    with pytest.raises(CommandError, match=r"^demo is Succeeded: only a plan that has failed has a next attempt$"):
        requesting(plan)


async def test_attempt_is_requested_in_spite_of_writes_of_the_manager() -> None:
    async with Simulation(actors=False) as simulation:
        client = simulation.client()
        await simulation.apply(MANIFEST)
        failed = MergePatch({"status": {"currentPhase": "Failed"}})
        plan = await client.patch(UPGRADE_PLANS, "demo", failed, subresource="status")
        await client.patch(UPGRADE_PLANS, "demo", MergePatch({"metadata": {"labels": {"a": "b"}}}))
        # The plan that was read has an old resourceVersion.
        changed = await change_plan(session(simulation), plan, requesting)
        assert objects.spec(changed)["attempt"] == 2


@pytest.mark.real_loop
@pytest.mark.full
async def test_next_attempt_is_requested_and_described(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        run = partial(cluster.run, "retry")

        async def attempt() -> object:
            return objects.spec(await cluster.client.get(UPGRADE_PLANS, "demo")).get("attempt")

        missing = await run("demo")
        assert missing.code == 1
        assert missing.line.endswith(": UpgradePlan demo not found. Run kubectl get upgradeplans")
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        await cluster.set(currentPhase="NodeUpgrading", nodeUpgradeStatuses=_STATES)
        early = await run("demo")
        assert early.line == "upgrade-manager: demo is Running: only a plan that has failed has a next attempt"
        assert await attempt() is None
        await cluster.set(currentPhase="Failed", phaseTransitionTimestamps=_TIMES)
        for _ in range(2):
            # The second request finds the first one, which the manager has not seen.
            found = await run("demo")
            assert (found.code, found.out.splitlines(), found.err) == (0, LINES, "")
            assert await attempt() == 2
        await cluster.client.patch(UPGRADE_PLANS, "demo", MergePatch({"spec": {"paused": True}}))
        assert (await run("demo")).out.splitlines() == [*HELD, *LINES[1:]]
        taken = {
            "type": "Degraded",
            "status": "True",
            "reason": "TakenOver",
            "message": "UpgradePlan b has taken over. X",
        }
        await cluster.set(attempt=2, conditions=[{**taken, **_TIME}])
        refused = await run("demo")
        assert refused.line == (
            "upgrade-manager: UpgradePlan b has taken over, so that this one has no further attempt. "
            "Create a new UpgradePlan"
        )
        assert await attempt() == 2
