"""Upgrades in which one actor is frozen at one moment, or one object is wrong: what the plan reports, and when.

`python -m tests.support.managers.stall_matrix` writes docs/stalls.md; with names of components, their rows alone.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hack import virtual_time
from hack.actors.freezer import REPOSITORY, boot_of, kubelet_of
from hack.actors.suc_job import LABEL_NODE
from hack.apiserver.history import Entry
from hack.apiserver.storage import Storage
from hack.demo.stalls import STALLS
from hack.simulation import Simulation
from tests.support.managers.upgrade import node_states, phases_of, started
from upgrade_manager.api.blockers import Blocker, read_blockers
from upgrade_manager.api.keys import LABEL_COMPONENT, Component
from upgrade_manager.api.phases import SUCCEEDED, TERMINAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import JOBS

DOCUMENT = Path(__file__).parents[3] / "docs/stalls.md"
#: Seconds for which an actor stays frozen after its blocker has appeared, so that false ones could.
LINGER = 150.0
#: Seconds within which a blocker must be cleared after the repair.
CLEARED = 2.0
#: Seconds by which a blocker may be late, beside a tenth of its deadline: `since` is in whole seconds.
LATE = 1.0
#: Seconds between two attempts to damage an object.
_LOOK = 0.1
#: Seconds until an upgrade has reached a moment, or has ended.
_TIMEOUT = 900.0
#: The first node that Rancher drains, and another one.
FIRST, _NODE = "node-0", "node-1"
#: Stands for the first node whose images are removed.
FIRST_CLEANED = "first-cleaned"
_PLANS = "upgradeplans.management.harvesterhci.io"
_HEAD = """# Stalls

Each row is an upgrade of three nodes in which one component hangs at one moment, or one object is wrong, until
{linger:.0f} s after the plan has reported it: the reason and the object that the plan names, when it has to name them,
when it did, and how many seconds after the repair the blocker was cleared. No other blocker appeared until then, and
none afterwards. Every upgrade succeeded. `tests/blockers/test_stall_matrix.py` runs them;
`python -m tests.support.managers.stall_matrix` writes this file.

| component or object | from | reason | object | deadline | reported after | cleared after |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One component that hangs, or one object that is wrong, from one moment on."""

    #: As in the table.
    component: str
    #: The frozen actor; empty for an object.
    actor: str = ""
    #: The break of the demo that makes the object wrong.
    stall: str = ""
    #: A phase value, or the state of a node.
    moment: str
    reason: str
    #: Kind and beginning of the name of the first object.
    kind: str
    name: str
    #: Seconds after which the wait for it is overdue.
    deadline: float
    #: Seconds by which the upgrade begins to wait after `since`.
    later: float = 0.0
    #: Seconds until the component has done what it could not.
    repair: float = 0.0

    @property
    def id(self) -> str:
        """Return the test's identifier."""
        return f"{self.component}, {self.moment}".replace(" ", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The course of a cell."""

    #: All blockers until they were cleared, and those after it.
    seen: tuple[Blocker, ...]
    later: tuple[Blocker, ...]
    #: True if there was one until the repair.
    lasts: bool
    #: Seconds from the first blocker's `since` until it was reported.
    reported: float
    #: Seconds from the repair until there was no blocker.
    cleared: float
    end: str

    def row(self, cell: Cell) -> str:
        """Return the line of the table."""
        first = self.seen[0]
        times = (cell.deadline + cell.later, self.reported, math.ceil(self.cleared))
        shown = " | ".join(f"{seconds:.0f} s" for seconds in times)
        named = f"{first.kind} {cell.name}…" if cell.name != first.name else f"{first.kind} {first.name}"
        return f"| {cell.component} | {cell.moment} | {first.reason} | {named} | {shown} |"


class PlanObserver:
    """Sees every state of the plan that is stored."""

    def __init__(self, storage: Storage) -> None:
        self.plan: Object = {}
        self.seen: dict[tuple[str, ...], Blocker] = {}
        self._changed = asyncio.Event()
        storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        if collection != _PLANS:
            return
        self.plan = entry.stored.object
        for blocker in self.blockers:
            self.seen.setdefault(blocker.identity, blocker)
        self._changed.set()

    @property
    def blockers(self) -> list[Blocker]:
        """The blockers at this moment."""
        return read_blockers(objects.status(self.plan).get("blockers"))

    def take(self) -> tuple[Blocker, ...]:
        """Return the blockers since the last call."""
        found = tuple(self.seen.values())
        self.seen.clear()
        return found

    @property
    def end(self) -> str:
        """The phase in which the plan has ended; empty while it runs."""
        phase = objects.status(self.plan).get("currentPhase")
        return phase if phase in TERMINAL else ""

    def is_at(self, moment: str) -> bool:
        """Report whether a phase value was recorded, or a node is in that state."""
        return moment in phases_of(self.plan) or moment in node_states(self.plan).values()

    async def until(self, is_so: Callable[[], bool], *, seconds: float) -> None:
        """Wait until it is so, or the plan has ended. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not is_so() and not self.end:
                self._changed.clear()
                await self._changed.wait()


async def run(cell: Cell, *, linger: float = LINGER, seed: int = 0) -> Outcome:
    """Run the upgrade, held up until so long after its report. Raises TimeoutError for a cell without a blocker."""
    clock = asyncio.get_running_loop().time
    async with Simulation(seed=seed) as simulation:
        observer = PlanObserver(simulation.server.storage)
        async with started(simulation):
            await observer.until(lambda: observer.is_at(cell.moment), seconds=_TIMEOUT)
            async with held_up(cell, simulation, observer):
                within = 1.1 * cell.deadline + cell.later + _TIMEOUT
                await observer.until(lambda: bool(observer.blockers), seconds=within)
                assert observer.blockers, f"{cell.id}: the upgrade ended as {observer.end} without a blocker"
                reported = (virtual_time.virtual_now() - observer.blockers[0].since).total_seconds()
                await asyncio.sleep(linger)
                lasts = bool(observer.blockers)
            repaired = clock()
            await observer.until(lambda: not observer.blockers, seconds=_TIMEOUT)
            cleared = clock() - repaired
            seen = observer.take()
            await observer.until(lambda: False, seconds=_TIMEOUT)
    later = observer.take()
    return Outcome(seen=seen, lasts=lasts, later=later, reported=reported, cleared=cleared, end=observer.end)


@asynccontextmanager
async def held_up(cell: Cell, simulation: Simulation, observer: PlanObserver) -> AsyncIterator[None]:
    """Freeze the actor or damage the object, and repair it at the end."""
    client = simulation.client()
    if cell.actor:
        actor = await _kubelet_of_first_job(client) if cell.actor == kubelet_of(FIRST_CLEANED) else cell.actor
        simulation.freezer.freeze(actor)
        yield
        simulation.freezer.thaw(actor)
        return
    damage, remedy = await STALLS[cell.stall].steps(client, observer.plan)
    while not damage:
        await asyncio.sleep(_LOOK)
        damage, remedy = await STALLS[cell.stall].steps(client, observer.plan)
    for command in damage:
        await command.run(client)
    yield
    for command in remedy:
        await command.run(client)


async def _kubelet_of_first_job(client: Client) -> str:
    """Return the kubelet of the first node with an image-cleanup Job: hashes of random uids decide which one it is."""
    selector = f"{LABEL_COMPONENT}={Component.IMAGE_CLEANUP}"
    while not (jobs := (await client.list(JOBS, label_selector=selector)).items):  # noqa: ASYNC110  # virtual time
        await asyncio.sleep(_LOOK / 10)
    return kubelet_of(objects.labels(jobs[0])[LABEL_NODE])


def faults(cell: Cell, outcome: Outcome) -> list[str]:
    """Return what is wrong, one sentence each."""
    first, limit = outcome.seen[0], 1.1 * cell.deadline + cell.later + LATE
    others = {str(one.reason) for one in outcome.seen} - {cell.reason}
    checks = (
        (not others, f"other blockers: {', '.join(sorted(others))}"),
        (outcome.lasts, "cleared before the repair"),
        (all(one.remedy for one in outcome.seen), "no remedy"),
        (not outcome.later, f"later blockers: {', '.join(one.message for one in outcome.later)}"),
        (first.reason == cell.reason, f"reason {first.reason}"),
        (first.kind == cell.kind and first.name.startswith(cell.name), f"object {first.kind} {first.name}"),
        (cell.deadline <= outcome.reported <= limit, f"reported after {outcome.reported:.1f} s"),
        (outcome.cleared <= CLEARED + cell.repair, f"cleared after {outcome.cleared:.1f} s"),
        (outcome.end == SUCCEEDED, f"ended as {outcome.end}"),
    )
    return [text for is_right, text in checks if not is_right]


def _cells(component: str, actor: str, rows: dict[str, tuple[str, str, str]], *, deadline: float = 60.0) -> list[Cell]:
    """Return the cells of a component: by moment the reason, and kind and name of the object."""
    return [
        Cell(
            component=component,
            actor=actor,
            moment=moment,
            reason=reason,
            kind=kind,
            name=name,
            deadline=deadline,
            # The repository is missed once the other replica is drained; evicted Pods terminate for a second or two.
            repair=1.0 if actor == "LonghornManager" or (actor, moment) == ("Drainer", "PreDrained") else 0.0,
            later=8.0 if (actor, moment) == ("Scheduler", "NodeUpgrading") else 0.0,
        )
        for moment, (reason, kind, name) in rows.items()
    ]


def _object(component: str, stall: str, kind: str, name: str, *, deadline: float, repair: float = 0.0) -> Cell:
    """Return the cell of an object that a break of the demo makes wrong."""
    (reason,) = STALLS[stall].reasons
    (cell,) = _cells(component, "", {STALLS[stall].phase: (reason, kind, name)}, deadline=deadline)
    return replace(cell, stall=stall, repair=repair)


_PRELOAD, _CLEANUP = (f"apply-upgrade-image-{work}-on-node-" for work in ("preload", "cleanup"))
_NODE_JOB, _SKIP = "upgrade-node-upgrade-", "apply-upgrade-skip-on-on-node-"
_SUC = ("UpgradeControllerSilent", "Deployment", "system-upgrade-controller")
_RANCHER = ("RancherSilent", "Cluster", "local")
_SECRET = ("RancherSilent", "Secret", "custom-")
_UNSERVED = ("RepositoryUnavailable", "Service", "upgrade-repo")
CELLS = (
    *_cells(
        "kubelet of a node",
        kubelet_of(_NODE),
        {
            "ImagePreloading": ("PodPending", "Pod", _PRELOAD + "1"),
            "ClusterUpgrading": ("PodPending", "Pod", "upgrade-cluster-upgrade"),
            "NodeUpgrading": ("PodPending", "Pod", _SKIP + "1"),
        },
    ),
    *_cells("kubelet of a node", kubelet_of(FIRST_CLEANED), {"CleaningUp": ("PodPending", "Pod", _CLEANUP)}),
    *_cells(
        "kubelet of a drained node", kubelet_of(FIRST), {"PreDrained": ("DrainFailing", "Pod", "")}, deadline=300.0
    ),
    *_cells(
        "kubelet of a drained node",
        kubelet_of(FIRST),
        {"PostDraining": ("PodPending", "Pod", _NODE_JOB + "post-drain-node-0")},
    ),
    *_cells(
        "kubelet of a rebooting node",
        kubelet_of(FIRST),
        {"WaitingReboot": ("NodeNotBack", "Node", FIRST)},
        deadline=1800.0,
    ),
    # The node is NotReady 40 s after its kubelet has renewed the lease, as it does every 10 s.
    replace(
        *_cells("boot of a node", boot_of(_NODE), {"NodeUpgrading": ("NodeNotBack", "Node", _NODE)}, deadline=30.0),
        later=10.0,
    ),
    *_cells(
        "scheduler",
        "Scheduler",
        {
            "RepoCreating": ("PodPending", "Pod", "upgrade-repo"),
            "ImagePreloading": ("PodPending", "Pod", _PRELOAD),
            "ClusterUpgrading": ("PodPending", "Pod", "upgrade-cluster-upgrade"),
            "NodeUpgrading": ("PodPending", "Pod", _SKIP + "0"),
            "CleaningUp": ("PodPending", "Pod", _CLEANUP),
        },
    ),
    *_cells(
        "Job controller",
        "JobController",
        {
            "ImagePreloading": ("JobHasNoPod", "Job", _PRELOAD),
            "ClusterUpgrading": ("JobHasNoPod", "Job", "upgrade-cluster-upgrade"),
            "NodeUpgrading": ("JobHasNoPod", "Job", _SKIP),
            "CleaningUp": ("JobHasNoPod", "Job", _CLEANUP),
        },
    ),
    *_cells(
        "CDI",
        "ImageController",
        {"ISODownloading": ("ImportStuck", "VirtualMachineImage", "upgrade-iso")},
        deadline=600.0,
    ),
    *_cells(
        "Rancher's planner",
        "Planner",
        {"NodeUpgrading": _RANCHER, "PreDrained": _SECRET, "WaitingReboot": _RANCHER, "PostDrained": _RANCHER},
        deadline=600.0,
    ),
    *_cells(
        "Rancher's drainer",
        "Drainer",
        {"NodeUpgrading": _RANCHER, "PreDrained": _SECRET, "WaitingReboot": _RANCHER, "PostDrained": _RANCHER},
        deadline=600.0,
    ),
    *_cells(
        "Rancher",
        "rancher",
        dict.fromkeys(("NodeUpgrading", "PreDrained", "PostDrained"), ("RancherSilent", "Deployment", "rancher")),
        deadline=600.0,
    ),
    *_cells("rancher-system-agent", "SystemAgent", {"NodeUpgrading": _SECRET}, deadline=600.0),
    *_cells(
        "KubeVirt's migrations",
        "virt-controller",
        {"NodeUpgrading": ("MigrationStuck", "VirtualMachineInstance", "vm-")},
        deadline=600.0,
    ),
    *_cells("Longhorn", "LonghornManager", {"PostDrained": ("VolumeDegraded", "Volume", "pvc-")}, deadline=600.0),
    *_cells(
        "Deployment controller", "DeploymentController", {"RepoCreating": (_UNSERVED[0], "Deployment", "upgrade-repo")}
    ),
    *_cells("system-upgrade-controller", "system-upgrade-controller", {"ImagePreloading": _SUC, "CleaningUp": _SUC}),
    *_cells(
        "upgrade repository",
        REPOSITORY,
        {
            "RepoCreating": ("RepositoryUnavailable", "Deployment", "upgrade-repo"),
            "MetadataPopulating": _UNSERVED,
            "ImagePreloading": _UNSERVED,
            "ClusterUpgrading": _UNSERVED,
            "NodeUpgrading": _UNSERVED,
        },
    ),
    _object("taint on all nodes", "unschedulable", "Pod", _PRELOAD, deadline=60.0),
    _object("Harvester's chart that a user pauses", "chart", "ManagedChart", "harvester", deadline=120.0, repair=1.0),
    _object("PodDisruptionBudget without disruptions", "pdb", "PodDisruptionBudget", "shop", deadline=300.0),
    _object("PodDisruptionBudget of a VM", "vm-budget", "PodDisruptionBudget", "ledger", deadline=0.0),
    _object("volume without a disk for a replica", "volume", "Volume", "pvc-", deadline=600.0, repair=1.0),
    _object("Job that a user suspends", "suspended", "Job", "upgrade-cluster-upgrade", deadline=60.0),
    _object("node that a user uncordons", "uncordoned", "Node", "node-", deadline=5.0),
    _object("node that does not join", "joining", "Machine", "custom-joining", deadline=5.0),
    _object("node that Rancher does not drain", "hook-lost", "Cluster", "local", deadline=5.0),
)


def cell_of(component: str) -> Cell:
    """Return the cell of a component that has only one."""
    (found,) = (cell for cell in CELLS if cell.component == component)
    return found


def text(*components: str) -> str:
    """Run the cells of these components, or all, and return the document with the rows that it has of others."""
    lines = DOCUMENT.read_text().splitlines() if components else []
    known = {tuple(line.split(" | ")[:2]): line for line in lines}
    rows = (_row(cell) if not components or cell.component in components else _known(known, cell) for cell in CELLS)
    return _HEAD.format(linger=LINGER) + "".join(f"{row}\n" for row in rows if row)


def _known(rows: dict[tuple[str, ...], str], cell: Cell) -> str:
    return rows.get((f"| {cell.component}", cell.moment), "")


def _row(cell: Cell) -> str:
    outcome = virtual_time.run(run(cell))
    found = faults(cell, outcome)
    if found:
        raise SystemExit(f"{cell.id}: {', '.join(found)}")
    return outcome.row(cell)


if __name__ == "__main__":
    DOCUMENT.write_text(text(*sys.argv[1:]))
