"""The phases of an upgrade, one row each, and the values of `status.currentPhase`, in order.

`pipeline/engine.py` has the table of what the phases do. CONTRIBUTING names all places of a new phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import Component

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

SUCCEEDED = "Succeeded"
FAILED = "Failed"

#: Values that end an upgrade.
TERMINAL: frozenset[str] = frozenset({SUCCEEDED, FAILED})


class PhaseName(StrEnum):
    """A phase, by its name in events and metrics."""

    INITIALIZE = "Initialize"
    ISO_DOWNLOAD = "ISODownload"
    REPO_CREATE = "RepoCreate"
    METADATA_POPULATE = "MetadataPopulate"
    IMAGE_PRELOAD = "ImagePreload"
    CLUSTER_UPGRADE = "ClusterUpgrade"
    NODE_UPGRADE = "NodeUpgrade"
    IMAGE_CLEANUP = "ImageCleanup"

    @property
    def spec(self) -> PhaseSpec:
        """The phase's row."""
        return _SPECS[self]

    @cached_property
    def active(self) -> str:
        """Value of `status.currentPhase` while the phase runs, such as `ISODownloading`."""
        return self.spec.active

    @cached_property
    def completed(self) -> str:
        """Value of `status.currentPhase` after the phase, such as `ISODownloaded`."""
        return self.spec.completed


class NodeWork(Enum):
    """The way in which a phase works on the nodes: its progress and its duration follow from it."""

    #: On the cluster: its progress is not counted.
    NONE = "none"
    #: On several nodes at a time: `api/progress.py` counts them.
    CONCURRENT = "concurrent"
    #: On one node after the other: counted, too, and the displays expect a duration for each node.
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpec:
    """The row of a phase: the facts that the manager and the displays know beside the work of its class."""

    name: PhaseName
    active: str
    completed: str
    #: The share in an upgrade's progress. All shares are 0.99 together: only a plan that has succeeded is complete.
    weight: float
    #: Seconds without visible progress that are usual; of a phase with several Jobs, for its slowest one.
    usual: float
    #: The component whose Jobs the phase runs; failed ones are kept when it fails.
    component: Component | None = None
    nodes: NodeWork = NodeWork.NONE
    #: False while charts or nodes change: nothing could undo an upgrade that is stopped then.
    deletable: bool = True


#: In the order of an upgrade.
PHASE_SPECS: tuple[PhaseSpec, ...] = (
    PhaseSpec(
        name=PhaseName.INITIALIZE,
        active="Initializing",
        completed="Initialized",
        weight=0.01,
        usual=300.0,
    ),
    PhaseSpec(
        name=PhaseName.ISO_DOWNLOAD,
        active="ISODownloading",
        completed="ISODownloaded",
        weight=0.09,
        usual=1800.0,
    ),
    PhaseSpec(
        name=PhaseName.REPO_CREATE,
        active="RepoCreating",
        completed="RepoCreated",
        weight=0.02,
        usual=600.0,
    ),
    PhaseSpec(
        name=PhaseName.METADATA_POPULATE,
        active="MetadataPopulating",
        completed="MetadataPopulated",
        weight=0.01,
        usual=300.0,
    ),
    PhaseSpec(
        name=PhaseName.IMAGE_PRELOAD,
        active="ImagePreloading",
        completed="ImagePreloaded",
        weight=0.15,
        usual=3600.0,
        component=Component.IMAGE_PRELOAD,
        nodes=NodeWork.CONCURRENT,
    ),
    PhaseSpec(
        name=PhaseName.CLUSTER_UPGRADE,
        active="ClusterUpgrading",
        completed="ClusterUpgraded",
        weight=0.20,
        usual=3600.0,
        component=Component.CLUSTER_UPGRADE,
        deletable=False,
    ),
    PhaseSpec(
        name=PhaseName.NODE_UPGRADE,
        active="NodeUpgrading",
        completed="NodeUpgraded",
        weight=0.45,
        usual=5400.0,
        component=Component.NODE_UPGRADE,
        nodes=NodeWork.SEQUENTIAL,
        deletable=False,
    ),
    PhaseSpec(
        name=PhaseName.IMAGE_CLEANUP,
        active="CleaningUp",
        completed="CleanedUp",
        weight=0.06,
        usual=3600.0,
        component=Component.IMAGE_CLEANUP,
        nodes=NodeWork.SEQUENTIAL,
    ),
)
_SPECS = {spec.name: spec for spec in PHASE_SPECS}

PHASES: tuple[PhaseName, ...] = tuple(spec.name for spec in PHASE_SPECS)

#: The values of all phases in order, without the terminal ones.
PHASE_VALUES: tuple[str, ...] = tuple(value for spec in PHASE_SPECS for value in (spec.active, spec.completed))

_PHASE_BY_VALUE = {value: spec.name for spec in PHASE_SPECS for value in (spec.active, spec.completed)}


def recorded_phases(status: Mapping[str, Any]) -> list[str]:
    """Return the values that a raw status records, in order."""
    return [entry["phase"] for entry in status.get("phaseTransitionTimestamps") or [] if entry.get("phase")]


def last_value(recorded: list[str]) -> str:
    """Return the last of the values before the end."""
    return next((value for value in reversed(recorded) if value in _PHASE_BY_VALUE), PhaseName.INITIALIZE.active)


def failed_phase(recorded: list[str]) -> PhaseName:
    """Return the phase in which a plan with these values failed, or that was to begin."""
    last = last_value(recorded)
    phase = _PHASE_BY_VALUE[last]
    following = PHASES[PHASES.index(phase) + 1 :]
    return following[0] if following and last == phase.completed else phase


def skipped_phases(recorded: Collection[str]) -> frozenset[PhaseName]:
    """Return the phases without a record before a recorded value: the plan passed them under a manager without them."""
    known = [PHASE_VALUES.index(value) for value in recorded if value in _PHASE_BY_VALUE]
    last = len(PHASE_VALUES) if SUCCEEDED in recorded else max(known, default=-1)
    passed = {_PHASE_BY_VALUE[value] for value in PHASE_VALUES[: max(last, 0)]}
    return frozenset(phase for phase in passed if not {phase.active, phase.completed} & set(recorded))


@lru_cache(maxsize=64)
def phase_of(value: str) -> PhaseName | None:
    """Return the phase of a `status.currentPhase`; None for a terminal, empty or unknown value."""
    return _PHASE_BY_VALUE.get(value)
