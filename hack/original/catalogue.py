"""All parts, in the order of the upgrade, and their tables; hack/documents.py writes them into a page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hack.original import charts, controllers, nodes, rancher
from hack.original.extra import EXTRA
from hack.original.listings import shown_in

if TYPE_CHECKING:
    from hack.original.entry import Entry, Part

PARTS: tuple[Part, ...] = (*rancher.PARTS, *charts.PARTS, *nodes.PARTS, *controllers.PARTS)
_GOLDEN = "../../tests/golden"
_SHOWN = "| Harvester's own upgrade | source | here | listing | reason |"


def entries() -> list[Entry]:
    """Return the entries of all parts."""
    return [entry for part in PARTS for entry in part.entries]


def tables() -> dict[str, str]:
    """Return the text of each place in the page, by its name."""
    return {
        "writes of Harvester's own upgrade": "\n\n".join([_counts(), *map(_part, PARTS)]),
        "writes of this project only": "\n".join(
            ["| writes | reason |", "|---|---|", *(f"| {one.what} | {one.because} |" for one in EXTRA)]
        ),
    }


def _counts() -> str:
    found = Counter(entry.verdict for entry in entries())
    numbers = ", ".join(f"{found[verdict]} {verdict}" for verdict in ("the same", "differently", "left out"))
    return f"{found.total()} entries: {numbers}."


def _part(part: Part) -> str:
    return "\n".join([f"## {part.title}", "", _SHOWN, "|---|---|---|---|---|", *map(_row, part.entries)])


def _row(entry: Entry) -> str:
    name = shown_in(entry.shown) if entry.shown else ""
    stem = name.rpartition("/")[2].removesuffix(".txt")
    link = f"[{stem}]({_GOLDEN}/{name})" if name else ""
    return f"| {entry.what} | {entry.where} | {entry.verdict} | {link} | {entry.because} |"
