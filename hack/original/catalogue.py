"""The entries of writes.yaml, and their tables; hack/documents.py writes them into a page."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from hack.yaml_documents import documents

GOLDEN = Path(__file__).parents[2] / "tests/golden"
#: Net writes of commands and manager, one line each.
WRITES = "writes/*.txt"
#: In the order of the search; the others show waits and programs, too.
_PLACES = (WRITES, "toolkit/*.txt", "three-nodes-by-version.txt")
_LINK = "../../tests/golden"
_SHOWN = "| Harvester's own upgrade | source | here | listing | reason |"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(_Model):
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


class Part(_Model):
    """A part of the upgrade: a heading of the document."""

    title: str
    entries: tuple[Entry, ...]


class Extra(_Model):
    """A class of this project's writes that stand in no entry."""

    what: str
    #: A regular expression that each line of the class matches.
    lines: str
    #: Whole sentences.
    because: str


class Catalogue(_Model):
    """The parts, in the order of the upgrade, and the further writes."""

    parts: tuple[Part, ...]
    extra: tuple[Extra, ...]

    @property
    def entries(self) -> list[Entry]:
        """Return the entries of all parts."""
        return [entry for part in self.parts for entry in part.entries]


CATALOGUE = Catalogue.model_validate(next(documents(Path(__file__).with_name("writes.yaml").read_text("utf-8"))))


@cache
def listings() -> dict[str, tuple[str, ...]]:
    """Return the lines of each listing that shows writes of this project, by its path below tests/golden."""
    paths = [path for place in _PLACES for path in sorted(GOLDEN.glob(place))]
    return {str(path.relative_to(GOLDEN)): tuple(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def shown_in(pattern: str) -> str:
    """Return the first listing with a line that matches; empty if there is none."""
    compiled = re.compile(pattern)
    return next((name for name, lines in listings().items() if any(map(compiled.search, lines))), "")


def tables() -> dict[str, str]:
    """Return the text of each place in the page, by its name."""
    return {
        "writes of Harvester's own upgrade": "\n\n".join([_counts(), *map(_part, CATALOGUE.parts)]),
        "writes of this project only": "\n".join(
            ["| writes | reason |", "|---|---|", *(f"| {one.what} | {one.because} |" for one in CATALOGUE.extra)]
        ),
    }


def _counts() -> str:
    found = Counter(entry.verdict for entry in CATALOGUE.entries)
    numbers = ", ".join(f"{found[verdict]} {verdict}" for verdict in ("the same", "differently", "left out"))
    return f"{found.total()} entries: {numbers}."


def _part(part: Part) -> str:
    return "\n".join([f"## {part.title}", "", _SHOWN, "|---|---|---|---|---|", *map(_row, part.entries)])


def _row(entry: Entry) -> str:
    name = shown_in(entry.shown) if entry.shown else ""
    stem = name.rpartition("/")[2].removesuffix(".txt")
    link = f"[{stem}]({_LINK}/{name})" if name else ""
    return f"| {entry.what} | {entry.where} | {entry.verdict} | {link} | {entry.because} |"
