"""The eight phases of an upgrade and the values of `status.currentPhase`, in order."""

from __future__ import annotations

from enum import StrEnum

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
    def active(self) -> str:
        """Value of `status.currentPhase` while the phase runs, such as `ISODownloading`."""
        return _VALUES[self][0]

    @property
    def completed(self) -> str:
        """Value of `status.currentPhase` after the phase, such as `ISODownloaded`."""
        return _VALUES[self][1]


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

#: The sixteen values in order, without the terminal ones.
PHASE_VALUES: tuple[str, ...] = tuple(value for phase in PHASES for value in _VALUES[phase])

_PHASE_BY_VALUE = {value: phase for phase in PHASES for value in _VALUES[phase]}


def phase_of(value: str) -> PhaseName | None:
    """Return the phase of a `status.currentPhase`; None for a terminal, empty or unknown value."""
    return _PHASE_BY_VALUE.get(value)
