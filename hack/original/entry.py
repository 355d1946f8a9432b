"""One write of Harvester's own upgrade, and the line of a listing that shows the same write of this project."""

from __future__ import annotations

from dataclasses import dataclass

#: Files of harvester/harvester at v1.8.0: the programs of the cluster and of a node, and what both share.
MANIFESTS, NODE, LIBRARY = "upgrade_manifests.sh", "upgrade_node.sh", "lib.sh"
#: The controller around them.
CONTROLLER, COMMON, SECRETS, JOBS, NODES, REPOSITORY = (
    f"{name}.go"
    for name in (
        "upgrade_controller",
        "common",
        "secret_controller",
        "job_controller",
        "node_controller",
        "upgrade_repo",
    )
)
#: The folders of these files in harvester/harvester.
FOLDERS = {
    MANIFESTS: "package/upgrade",
    NODE: "package/upgrade",
    LIBRARY: "package/upgrade",
    CONTROLLER: "pkg/controller/master/upgrade",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A write, a deletion, a program that runs, or a wait that protects one."""

    #: The object and field, or the file: a sentence without a verb of the reader.
    what: str
    #: File and line.
    where: str
    #: A regular expression that a line of a listing matches; empty where this project does not do it.
    shown: str = ""
    #: A regular expression that no line of any listing matches, where this project does not do it.
    never: str = ""
    #: Whole sentences about the difference; empty where there is none.
    because: str = ""

    @property
    def verdict(self) -> str:
        """`the same`, `differently` or `left out`."""
        if not self.shown:
            return "left out"
        return "differently" if self.because else "the same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the upgrade: a heading of the document."""

    title: str
    entries: tuple[Entry, ...]


def same(what: str, where: str, shown: str) -> Entry:
    """Return a write that this project makes as well."""
    return Entry(what=what, where=where, shown=shown)


def differently(what: str, where: str, shown: str, because: str) -> Entry:
    """Return a write that this project makes in another way."""
    return Entry(what=what, where=where, shown=shown, because=because)


def left_out(what: str, where: str, never: str, because: str) -> Entry:
    """Return a write that this project does not make."""
    return Entry(what=what, where=where, never=never, because=because)
