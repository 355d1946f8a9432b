"""The way of a healthy reconcile through the code stays short: each file that it enters has to be read to follow it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import hack
import upgrade_manager
from hack.simulation import Simulation
from tests.support.managers.upgrade import started
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.pipeline.reconciler import PlanReconciler
from upgrade_manager.runtime.result import Result

#: The files that send requests and record events.
EFFECTS = {"kube/client.py", "kube/events.py"}
PRODUCT, CLUSTER = (f"{Path(str(package.__file__)).parent}/" for package in (upgrade_manager, hack))


@dataclass(kw_only=True)
class EnteredFiles:
    """The files that one reconcile entered, and the plan's status before and after it."""

    before: Object
    after: Object = field(default_factory=dict)
    #: Paths below upgrade_manager, each with the functions that ran.
    files: dict[str, set[str]] = field(default_factory=dict)
    #: Code that the reconcile is known to have entered.
    codes: set[CodeType] = field(default_factory=set)
    #: The frames that were active when it began: its callers run again each time it is resumed.
    callers: set[FrameType] = field(default_factory=set)

    @property
    def phase(self) -> str:
        """The phase in which it began and ended; empty if it changed the phase."""
        first, last = (str(status.get("currentPhase") or "") for status in (self.before, self.after))
        return first if first == last else ""

    @property
    def is_quiet(self) -> bool:
        """True if it sent no request and recorded no event."""
        return self.files.keys().isdisjoint(EFFECTS)

    def moved_to(self, state: str) -> bool:
        """Return True if it moved a node to that state."""
        before, after = (status.get("nodeUpgradeStatuses") or {} for status in (self.before, self.after))
        return any(
            node["state"] == state and (before.get(name) or {}).get("state") != state for name, node in after.items()
        )

    def enter(self, frame: FrameType) -> None:
        """Record the function of the frame, unless the simulated cluster has called it, or it has called this one."""
        code = frame.f_code
        if code in self.codes or not code.co_filename.startswith(PRODUCT):
            return
        if frame in self.callers or _is_called_by_cluster(frame):
            return
        self.codes.add(code)
        self.files.setdefault(code.co_filename.removeprefix(PRODUCT), set()).add(code.co_qualname)

    def __str__(self) -> str:
        lines = [f"{path}: {', '.join(sorted(names))}" for path, names in sorted(self.files.items())]
        return "\n".join([f"{len(self.files)} files in {self.phase}:", *lines])


#: Of the running reconcile and of the tasks that it starts.
_current: ContextVar[EnteredFiles | None] = ContextVar("entered", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[list[EnteredFiles]]:
    """Record what each reconcile of any plan enters meanwhile."""
    found: list[EnteredFiles] = []
    reconcile = PlanReconciler.reconcile

    async def recording(self: PlanReconciler, name: str) -> Result:
        entered = EnteredFiles(before=_status(self, name), callers=set(_stack(sys._getframe(1))))
        token = _current.set(entered)
        sys.setprofile(_profile)
        try:
            return await reconcile(self, name)
        finally:
            sys.setprofile(None)
            _current.reset(token)
            entered.after = _status(self, name)
            entered.callers.clear()
            found.append(entered)

    PlanReconciler.reconcile = recording  # type: ignore[method-assign]
    try:
        yield found
    finally:
        PlanReconciler.reconcile = reconcile  # type: ignore[method-assign]


def _status(reconciler: PlanReconciler, name: str) -> Object:
    return objects.status(reconciler._plans.store.get(name) or {})


def _profile(frame: FrameType, event: str, _: Any) -> None:
    entered = _current.get()
    if event == "call" and entered is not None:
        entered.enter(frame)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_called_by_cluster(frame: FrameType) -> bool:
    """Return True if the API server's or another controller's code runs, which uses the product as a library."""
    for one in _stack(frame.f_back):
        name = one.f_code.co_filename
        if name.startswith(CLUSTER):
            return not name.endswith("virtual_time.py")
        if name.endswith("asyncio/events.py"):
            break
    return False


#: Files of upgrade_manager, in any package, from `PlanReconciler.reconcile` inwards.
LIMIT = 46
#: The journey of one event, as ARCHITECTURE.md has it.
JOURNEY = {
    "pipeline/reconciler.py",
    "pipeline/context.py",
    "pipeline/engine.py",
    "pipeline/node_upgrade/phase.py",
    "nodes/node_view.py",
    "nodes/drain.py",
    "pipeline/node_upgrade/effects.py",
    "kube/client.py",
    "pipeline/status.py",
}


def of_completed_job(entered: EnteredFiles) -> bool:
    return entered.moved_to("PreDrained")


def of_quiet_node_upgrade(entered: EnteredFiles) -> bool:
    """Return True once a node has started: the reconcile after the begin checks once what the manager has written."""
    states = {node["state"] for node in (entered.before.get("nodeUpgradeStatuses") or {}).values()}
    return entered.is_quiet and entered.phase == "NodeUpgrading" and not states <= {"ImagePreloaded"}


def of_image_preload(entered: EnteredFiles) -> bool:
    return entered.phase == "ImagePreloading"


@pytest.mark.full
async def test_healthy_reconcile_enters_few_files() -> None:
    with recorded() as reconciles:
        async with Simulation("three-nodes") as simulation, started(simulation) as stage:
            await stage.succeed()
    nodes = len(simulation.scenario.nodes.names)
    assert sum(map(of_completed_job, reconciles)) == nodes
    for is_meant in (of_completed_job, of_quiet_node_upgrade, of_image_preload):
        found = [one for one in reconciles if is_meant(one)]
        assert len(found) >= nodes
        longest = max(found, key=lambda one: len(one.files))
        assert len(longest.files) <= LIMIT, str(longest)
    # The measure sees what runs.
    assert all(one.files.keys() >= JOURNEY for one in reconciles if of_completed_job(one))
