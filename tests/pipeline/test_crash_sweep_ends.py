"""The manager is killed after every write of a deletion or a failure, in each phase, or loses its response.

The state right after one write is the state right before the next, so one kill for each is enough; the first one
happens shortly before the deletion or the failure.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from hack.apiserver.history import Entry
from hack.apiserver.storage import Storage
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import created_objects, overridden_settings
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.announcements import steps
from tests.support.managers.histories import history_events
from tests.support.managers.manager_restarts import UNDISTURBED, Interruption, restarted
from tests.support.managers.sweep import STRIDE, Sweep, cases
from tests.support.managers.upgrade import UpgradeRun, phases_of
from upgrade_manager.api.keys import suc_node_label
from upgrade_manager.api.phases import FAILED, PHASES, SUCCEEDED, PhaseName, phase_of
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS

PREFIX = suc_node_label("")


class LateLabels:
    """Sees such labels when they are stored.

    When a Job is complete, the real controller reads the Plan, then updates the node. A Plan that is deleted in between
    leaves its label behind, whatever the manager does; a label that is older than the deletion is the manager's fault.
    """

    def __init__(self, storage: Storage) -> None:
        self.found: Counter[str] = Counter()
        self._plans: set[str] = set()
        storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        if collection == "plans.upgrade.cattle.io":
            change = self._plans.discard if entry.kind == "DELETED" else self._plans.add
            change(entry.stored.name)
        elif collection == "nodes" and entry.previous is not None:
            added = objects.labels(entry.stored.object).keys() - objects.labels(entry.previous.object).keys()
            keys = [key for key in added if key.startswith(PREFIX)]
            self.found.update(key for key in keys if key.removeprefix(PREFIX) not in self._plans)


#: Virtual seconds after which an event without a response is sent again.
_EVENT_RETRY = 15.0
#: Writes that are swept before the deletion.
BEFORE = 2
#: Writes between the failure and the first removal: status, restored settings, their annotation, and an event.
VERDICT = 7
#: By what fails: the cluster, and the phase in which it does.
FAILING: dict[str, tuple[RepairableScenario, PhaseName]] = {
    "the check of the disks": (
        RepairableScenario.of(nodes={"disks": {"node-1": {"used_gib": 250}}}),
        PhaseName.INITIALIZE,
    ),
    "the ISO": (
        RepairableScenario.of(image_import={"attempts": 99, "message": "unexpected EOF"}),
        PhaseName.ISO_DOWNLOAD,
    ),
    "eligibility": (
        RepairableScenario.of(release={"metadata": {"minUpgradableVersion": "v1.7.5"}}),
        PhaseName.METADATA_POPULATE,
    ),
    "a node's images": (RepairableScenario.of(**fault("prepare", SECOND)), PhaseName.IMAGE_PRELOAD),
    "the cluster's components": (RepairableScenario.of(**fault("manifests")), PhaseName.CLUSTER_UPGRADE),
    "a node's pre-drain": (RepairableScenario.of(**fault("pre-drain", SECOND)), PhaseName.NODE_UPGRADE),
    "a node's post-drain": (RepairableScenario.of(**fault("post-drain", SECOND)), PhaseName.NODE_UPGRADE),
    "the only node": (RepairableScenario.of("one-node", **fault("single-node-upgrade")), PhaseName.NODE_UPGRADE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One upgrade up to such an end; equal to others with the same end."""

    phases: list[str]
    created: list[str]
    settings: list[Any]
    annotations: dict[str, str]
    #: Except errors on the way.
    events: Counter[str]
    #: Of a failure.
    history: Counter[str]
    errors: list[str] = field(compare=False)
    #: Writes of the first life before the deletion; 0 without one.
    before: int = field(compare=False)
    #: All of them.
    writes: list[str] = field(compare=False)
    #: The overrides to restore.
    originals: list[Any] = field(compare=False)


async def run(scenario: RepairableScenario, *, delete_in: str = "", interruption: Interruption = UNDISTURBED) -> Run:
    """Run an upgrade that is deleted when it reaches a phase, or that fails."""
    async with Simulation(scenario, scale=0) as simulation:
        originals = await overridden_settings(simulation)
        late = LateLabels(simulation.server.storage)
        stage = await UpgradeRun.set_up(simulation)
        async with restarted(stage, [interruption]) as managers:
            await stage.create_plan()
            before = 0
            if delete_in:
                await stage.until_recorded(delete_in)
                before = len(managers.lives[0].wire.writes)
                await stage.client.delete(UPGRADE_PLANS, stage.name)
            await stage.until("deleted" if delete_in else FAILED)
            await stage.settle()
            if interruption != UNDISTURBED:
                await asyncio.sleep(_EVENT_RETRY)
        events = await stage.events()
        errors = [event for event in events if event["reason"] == "ReconcileError"]
        plan = {"metadata": {}} if delete_in else await stage.plan()
        return Run(
            phases=phases_of(plan),
            created=await created_objects(simulation),
            settings=_without(late.found, await overridden_settings(simulation)),
            annotations=objects.annotations_of(plan),
            events=steps(event for event in events if event not in errors),
            history=Counter() if delete_in else steps(await history_events(stage)),
            errors=[event["message"] for event in errors],
            before=before,
            writes=managers.lives[0].wire.writes,
            originals=originals,
        )


def _without(late: Counter[str], settings: list[Any]) -> list[Any]:
    interval, descheduler, strategy, labels, *rest = settings
    return [interval, descheduler, strategy, [*(Counter(labels) - late).elements()], *rest]


def mishaps(first: int, last: int, *, beginning: int, sweep: Sweep) -> Iterator[tuple[str, Interruption]]:
    """Yield each interruption with its description."""
    # Odd, so that kills and losses alternate where not all are swept.
    stride = 2 * STRIDE - 1
    both = list(product(range(first, last + 1), [False, True]))
    for write, is_lost in sweep.some(both, beginning=beginning, stride=stride):
        what = f"{'no response to' if is_lost else 'killed after'} write {write} of {last}"
        yield what, Interruption(lose_at=write) if is_lost else Interruption(die_at=write, after=True)


#: All phases, and plans that have ended: the clean-up of the end may still go on.
DELETED = [*(phase.active for phase in PHASES), SUCCEEDED, FAILED]


def _assert_restored(ended: Run, *, held: bool) -> None:
    """Check the settings; Rancher's strategy holds the nodes after an early end."""
    interval, descheduler, strategy, *rest = ended.settings
    assert [interval, descheduler, *rest] == ended.originals[:2] + ended.originals[3:]
    assert (strategy != ended.originals[2]) == held


@pytest.mark.rule(
    "pipeline: cleanup may be interrupted and repeated",
    "pipeline: deletion in any phase runs the same cleanup and then removes the finalizer",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("phase", cases(DELETED, default=["ISODownloading", "NodeUpgrading", "Succeeded"]))
@pytest.mark.thin
async def test_successor_finishes_a_deletion(phase: str, sweep: Sweep) -> None:
    scenario = RepairableScenario.of(**(fault("prepare", SECOND) if phase == FAILED else {}))
    golden = await run(scenario, delete_in=phase)
    assert (golden.created, golden.errors) == ([], [])
    # NodeUpgrade begins with a change of the hosts, before Rancher is asked for anything.
    _assert_restored(golden, held=False)
    beginning = max(1, golden.before + 1 - BEFORE)
    for what, interruption in mishaps(beginning, len(golden.writes), beginning=DELETED.index(phase), sweep=sweep):
        ending = await run(scenario, delete_in=phase, interruption=interruption)
        assert (ending.created, ending.settings) == ([], golden.settings), what
        _assert_errors_have_reasons(ending, interruption, what)


@pytest.mark.rule(
    "pipeline: every reconcile can be interrupted and repeated with the same outcome",
    "pipeline: no crash loses or repeats a row of the history, but an error's of the last minute",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", cases(FAILING, default=["the ISO", "a node's pre-drain", "the only node"]))
@pytest.mark.thin
async def test_successor_finishes_a_failure(what: str, sweep: Sweep) -> None:
    scenario, phase = FAILING[what]
    golden = await run(scenario)
    assert golden.errors == []
    _assert_restored(golden, held=what in {"a node's pre-drain", "a node's post-drain"})
    *_, last, end = golden.phases
    assert (phase_of(last), end) == (phase, FAILED)
    removal = next(number for number, write in enumerate(golden.writes, 1) if write.startswith("DELETE"))
    beginning = max(1, removal - VERDICT)
    for happens, interruption in mishaps(
        beginning, len(golden.writes), beginning=list(FAILING).index(what), sweep=sweep
    ):
        ending = await run(scenario, interruption=interruption)
        assert ending == golden, happens
        _assert_errors_have_reasons(ending, interruption, happens)


def _assert_errors_have_reasons(ending: Run, interruption: Interruption, what: str) -> None:
    """Check that only the loss of a response is reported."""
    assert interruption.lose_at or ending.errors == [], what
    assert all("the response was lost" in message for message in ending.errors), what
