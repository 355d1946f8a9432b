"""The work for one node does not grow with the cluster: nodes that wait or are done cost nearly nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Coroutine, Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import upgrade_manager
from hack import scenario as scenarios
from hack import virtual_time
from hack.bench.in_process import upgraded
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.nodes import decided_nodes
from upgrade_manager.pipeline.reconciler import PlanReconciler
from upgrade_manager.runtime.result import Result

ROOT = Path(str(upgrade_manager.__file__)).parent
#: The code that a reconcile runs, and the simulated cluster does not.
COUNTED = tuple(f"{ROOT}/{part}" for part in ("api/", "facts/", "kube/store.py", "nodes/", "pipeline/"))
FEW, MANY = 8, 24
#: Calls in the upgrade of one node for each other node. A process that decides about all nodes made 3,300.
LIMIT = 300
#: Calls in a reconcile for each Job of the preload, at least.
CALLS_FOR_A_JOB = 20


class Calls:
    """Counts the Python functions, comprehensions included, that the reconciles of the node upgrade call."""

    def __init__(self) -> None:
        self.count = 0

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(COUNTED):
            self.count += 1


async def _calls_for_a_node(monkeypatch: pytest.MonkeyPatch, nodes: int) -> float:
    calls, reconcile = Calls(), PlanReconciler._reconcile_plan

    async def counted(self: PlanReconciler, plan: Object) -> Result:
        if objects.text(plan, "status", "currentPhase") != PhaseName.NODE_UPGRADE.active:
            return await reconcile(self, plan)
        sys.setprofile(calls.profile)
        try:
            return await reconcile(self, plan)
        finally:
            sys.setprofile(None)

    scenario = scenarios.load("nodes-1000").changed(nodes={"count": nodes, "management": 3}, vms={"count": nodes})
    with monkeypatch.context() as patched:
        patched.setattr(PlanReconciler, "_reconcile_plan", counted)
        async with upgraded(scenario):
            return calls.count / nodes


@pytest.mark.full
def test_work_for_a_node_does_not_grow_with_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (virtual_time.run(_calls_for_a_node(monkeypatch, nodes)) for nodes in (FEW, MANY))
    assert few > 1000
    assert (many - few) / (MANY - FEW) < LIMIT


class Steps:
    """A reconcile that counts its calls by step: what runs before the event loop serves other tasks."""

    def __init__(self, reconcile: Coroutine[Any, Any, Result]) -> None:
        self._reconcile = reconcile
        self.calls: list[int] = []

    def __await__(self) -> Generator[Any, None, Result]:
        running = self._reconcile.__await__()
        while True:
            step = Calls()
            sys.setprofile(step.profile)
            try:
                awaited = next(running)
            except StopIteration as end:
                result: Result = end.value
                return result
            finally:
                sys.setprofile(None)
                self.calls.append(step.count)
            yield awaited


async def _longest_steps_of_the_preload(monkeypatch: pytest.MonkeyPatch, nodes: int) -> list[float]:
    reconcile, found = PlanReconciler._reconcile_plan, list[float]()

    async def counted(self: PlanReconciler, plan: Object) -> Result:
        if objects.text(plan, "status", "currentPhase") != PhaseName.IMAGE_PRELOAD.active:
            return await reconcile(self, plan)
        steps = Steps(reconcile(self, plan))
        result = await steps
        if sum(steps.calls) > CALLS_FOR_A_JOB * nodes:
            found.append(max(steps.calls) / sum(steps.calls))
        return result

    monkeypatch.setattr(PlanReconciler, "_reconcile_plan", counted)
    async with upgraded(scenarios.load("nodes-1000").changed(nodes={"count": nodes}, vms={"count": nodes})):
        return found


@pytest.mark.full
def test_other_tasks_run_between_jobs_and_their_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = virtual_time.run(_longest_steps_of_the_preload(monkeypatch, MANY))
    assert len(found) > MANY / 2
    assert max(found) < 2 / 3


async def _decisions_in_the_clean_up(monkeypatch: pytest.MonkeyPatch, nodes: int) -> int:
    decide, reconcile, counts = decided_nodes._decide, PlanReconciler._reconcile_plan, Counter[str]()
    phase = ""

    async def followed(self: PlanReconciler, plan: Object) -> Result:
        nonlocal phase
        phase = objects.text(plan, "status", "currentPhase")
        return await reconcile(self, plan)

    def counted(*args: Any) -> Any:
        counts[phase] += 1
        return decide(*args)

    monkeypatch.setattr(PlanReconciler, "_reconcile_plan", followed)
    monkeypatch.setattr(decided_nodes, "_decide", counted)
    async with upgraded(scenarios.load("nodes-1000").changed(nodes={"count": nodes}, vms={"count": nodes})):
        return counts[PhaseName.IMAGE_CLEANUP.active]


@pytest.mark.full
def test_image_cleanup_decides_about_changed_nodes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node changes a few times: by its label, and in the plan's status."""
    decisions = virtual_time.run(_decisions_in_the_clean_up(monkeypatch, FEW))
    assert FEW < decisions < 6 * FEW
