"""One change that an upgrade makes beside the new versions of its components.

generic.py and the modules of the pairs list the rows, pairs.py joins them; the toolkit's steps carry them out, or
pipeline/settings around the Jobs, and `upgrade-manager steps` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from upgrade_manager.api.keys import ToolkitKind


class Place(Enum):
    """The part of an upgrade that carries a row out."""

    BEFORE_RANCHER = "C1"
    WITH_RANCHER = "C2"
    AFTER_RANCHER = "C3"
    WITH_CHARTS = "C4"
    AFTER_CHARTS = "C5"
    BEFORE_RKE2 = "N1"
    BEFORE_OS = "N2"
    BEFORE_REBOOT = "N3"
    AROUND_NODES = "M"


#: Each place in words, in the order of the upgrade.
PLACES = {
    Place.BEFORE_RANCHER: "the cluster, before Rancher is upgraded",
    Place.WITH_RANCHER: "the cluster, as Rancher is upgraded",
    Place.AFTER_RANCHER: "the cluster, after Rancher is upgraded",
    Place.WITH_CHARTS: "the cluster, with Harvester's charts",
    Place.AFTER_CHARTS: "the cluster, after Harvester's charts",
    Place.BEFORE_RKE2: "each node, before RKE2 restarts",
    Place.BEFORE_OS: "each node, before its operating system is installed",
    Place.BEFORE_REBOOT: "each node, before its reboot",
    Place.AROUND_NODES: "the manager, around the nodes",
}


class Executor(StrEnum):
    """Who carries a row out."""

    #: A Job that runs the toolkit.
    JOB = "its Job"
    #: The manager, around the Jobs.
    MANAGER = "the manager"


#: Each kind of toolkit in words.
TOOLKITS = {ToolkitKind.OWN: "this project's toolkit", ToolkitKind.HARVESTER: "Harvester's toolkit"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A place in a public repository at a tag, in which the need for a row was read."""

    #: The repository on GitHub: `harvester/harvester`.
    repository: str
    tag: str
    path: str
    line: int

    def __str__(self) -> str:
        """`harvester/harvester v1.8.0 package/upgrade/upgrade_manifests.sh:781`."""
        return f"{self.repository} {self.tag} {self.path}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discussion:
    """An issue or a pull request that gives the reason for a row."""

    repository: str
    number: int

    def __str__(self) -> str:
        """`harvester/harvester#11341`."""
        return f"{self.repository}#{self.number}"


def manifests(tag: str, line: int) -> Source:
    """Return a line of the program by which Harvester's own upgrade to this release changes the cluster."""
    return Source(repository="harvester/harvester", tag=tag, path="package/upgrade/upgrade_manifests.sh", line=line)


def library(tag: str, line: int) -> Source:
    """Return a line of the functions that this program shares with the one for nodes."""
    return Source(repository="harvester/harvester", tag=tag, path="package/upgrade/lib.sh", line=line)


def node_program(tag: str, line: int) -> Source:
    """Return a line of the program by which Harvester's own upgrade to this release changes a node."""
    return Source(repository="harvester/harvester", tag=tag, path="package/upgrade/upgrade_node.sh", line=line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A change, the state in which it is made already, and the way back."""

    #: Constant and unique among all rows.
    id: str
    place: Place
    #: A whole sentence for operators.
    step: str
    #: The objects and files that the row may touch.
    changes: tuple[str, ...]
    #: The state in which nothing is left to do, a clause.
    done_if: str
    #: The way back, a sentence.
    undo: str
    sources: tuple[Source | Discussion, ...]
    #: With the toolkit of this project, and with Harvester's: `status.toolkitImage.kind` of a plan decides.
    own: Executor = Executor.JOB
    harvester: Executor = Executor.JOB

    def executor(self, kind: ToolkitKind) -> Executor:
        """Return who carries the row out with this kind of toolkit."""
        return self.own if kind is ToolkitKind.OWN else self.harvester

    @property
    def carried_out(self) -> str:
        """`with either toolkit: the manager`, or one part for each kind."""
        if self.own is self.harvester:
            return f"with either toolkit: {self.own}"
        return "; ".join(f"with {name}: {self.executor(kind)}" for kind, name in TOOLKITS.items())
