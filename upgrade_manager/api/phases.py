"""The eight phases of an upgrade, and the values of `status.currentPhase` in their order."""

from __future__ import annotations

from enum import StrEnum

SUCCEEDED = "Succeeded"
FAILED = "Failed"

#: The values after which nothing more is done for a plan.
TERMINAL: frozenset[str] = frozenset({SUCCEEDED, FAILED})


class PhaseName(StrEnum):
    """A phase, by the name that events and metrics use; its two values stand in `status.currentPhase`."""

    INITIALIZE = "Initialize"
    ISO_DOWNLOAD = "ISODownload"
    REPO_CREATE = "RepoCreate"
    METADATA_POPULATE = "MetadataPopulate"
    IMAGE_PRELOAD = "ImagePreload"
    CLUSTER_UPGRADE = "ClusterUpgrade"
    NODE_UPGRADE = "NodeUpgrade"
    IMAGE_CLEANUP = "ImageCleanup"

    @property
    def active(self) -> str:
        """The value while the phase is at work: `ISODownloading`."""
        return _VALUES[self][0]

    @property
    def completed(self) -> str:
        """The value once the phase is done: `ISODownloaded`."""
        return _VALUES[self][1]

    @property
    def next(self) -> PhaseName | None:
        """The phase after this one; None after the last."""
        following = PHASES[PHASES.index(self) + 1 :]
        return following[0] if following else None


_VALUES: dict[PhaseName, tuple[str, str]] = {
    PhaseName.INITIALIZE: ("Initializing", "Initialized"),
    PhaseName.ISO_DOWNLOAD: ("ISODownloading", "ISODownloaded"),
    PhaseName.REPO_CREATE: ("RepoCreating", "RepoCreated"),
    PhaseName.METADATA_POPULATE: ("MetadataPopulating", "MetadataPopulated"),
    PhaseName.IMAGE_PRELOAD: ("ImagePreloading", "ImagePreloaded"),
    PhaseName.CLUSTER_UPGRADE: ("ClusterUpgrading", "ClusterUpgraded"),
    PhaseName.NODE_UPGRADE: ("NodeUpgrading", "NodeUpgraded"),
    PhaseName.IMAGE_CLEANUP: ("CleaningUp", "CleanedUp"),
}


PHASES: tuple[PhaseName, ...] = tuple(PhaseName)

#: The sixteen values in the order in which a run goes through them, without the terminal ones.
PHASE_VALUES: tuple[str, ...] = tuple(value for phase in PHASES for value in _VALUES[phase])

_PHASE_BY_VALUE = {value: phase for phase in PHASES for value in _VALUES[phase]}
_POSITION = {value: index for index, value in enumerate((*PHASE_VALUES, SUCCEEDED))}


def phase_of(value: str) -> PhaseName | None:
    """The phase that a current phase value belongs to; None for a terminal, an empty or an unknown value."""
    return _PHASE_BY_VALUE.get(value)


def position(value: str) -> int:
    """How far a value stands in a run: 0 for Initializing, 16 for Succeeded.

    -1 for a plan that has not begun, for Failed (which can come at any point) and for a value that only a newer
    version knows.
    """
    return _POSITION.get(value, -1)


def is_terminal(value: str) -> bool:
    """Whether a plan with this current phase is over."""
    return value in TERMINAL
