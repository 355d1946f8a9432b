"""The index of rules in docs/rules: its tables read, and whatever is wrong with them said in sentences."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

HEADER = ["rule", "held by"]
#: The last section of a document: rules of parts that do not exist yet, and what they wait for.
NOT_YET = "Not yet held"
NOT_YET_HEADER = ["rule", "waits for"]
_RULER = ["---", "---"]
_NAME = re.compile(r"`([^`]+)`")
_NAMES = re.compile(r"`[^`]+`(?:,\s*`[^`]+`)*")
_TEST = re.compile(r"tests/[\w/]+\.py(?:::\w+)+(?:\[.+\])?")
#: The API server, which the marker `servers` puts before a test's other parameters.
_SERVER = re.compile(r"\[(?:embedded|real)(?:-(?=.)|(?=\]))")


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a table."""

    #: Document and line, for messages.
    where: str
    section: str
    #: A few words that name it.
    text: str
    #: The second cell as it is written.
    held_by: str

    @property
    def tests(self) -> list[str]:
        """The tests that the row names."""
        return _NAME.findall(self.held_by)


@dataclass(frozen=True, slots=True)
class Document:
    """One file of the index."""

    name: str
    #: Headings in order, the title first.
    sections: list[str]
    rules: list[Rule]
    #: Rows that are none, in sentences.
    faults: list[str]


def parse(name: str, text: str) -> Document:
    """Read the rules of a document; what cannot be read is among its faults."""
    document = Document(name, [], [], [])
    lines = enumerate(text.splitlines(), start=1)
    for is_table, group in itertools.groupby(lines, key=lambda line: line[1].startswith("|")):
        if is_table:
            _read_table(document, [(f"{name}:{number}", _cells(line)) for number, line in group])
        else:
            document.sections.extend(line.lstrip("#").strip() for _, line in group if line.startswith("#"))
    return document


def _cells(line: str) -> list[str]:
    """The cells of a row; a bar inside of one is written with a backslash before it."""
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|"))
    return [cell.replace("\\|", "|").strip() for cell in (cells if cells[-1].strip() else cells[:-1])]


def _read_table(document: Document, rows: list[tuple[str, list[str]]]) -> None:
    section = document.sections[-1] if document.sections else ""
    header = NOT_YET_HEADER if section == NOT_YET else HEADER
    where, first = rows[0]
    if [cells for _, cells in rows[:2]] != [header, _RULER]:
        document.faults.append(f"{where}: a table begins with | {' | '.join(header)} | and |---|---|, not {first}")
        return
    for row, cells in rows[2:]:
        if len(cells) == len(HEADER) and all(cells):
            document.rules.append(Rule(row, section, cells[0], cells[1]))
        else:
            document.faults.append(f"{row}: a row is a rule and what holds it, not {cells}")


def complaints(documents: Iterable[Document], exists: Collection[str]) -> list[str]:
    """Whatever is wrong with the index; `exists` are the tests as `spellings` gives them."""
    documents = list(documents)
    rules = [rule for document in documents for rule in document.rules]
    found = [fault for document in documents for fault in (*document.faults, *_misplaced(document))]
    for rule in rules:
        found += _faults_of_waiting(rule) if rule.section == NOT_YET else _faults_of_held(rule, exists)
    return found + list(_repeated(rules))


def _misplaced(document: Document) -> Iterator[str]:
    if not document.rules:
        yield f"{document.name}: it has no rule"
    if NOT_YET in document.sections[:-1]:
        yield f"{document.name}: '{NOT_YET}' is the last section"
    with_rules = {rule.section for rule in document.rules}
    for section in document.sections[1:]:
        if section not in with_rules:
            yield f"{document.name}: section '{section}' has no rule"
    for section in sorted({each for each in document.sections if document.sections.count(each) > 1}):
        yield f"{document.name}: section '{section}' is there twice"


def _faults_of_waiting(rule: Rule) -> Iterator[str]:
    if any(name.startswith("tests/") for name in rule.tests):
        yield f"{rule.where}: '{rule.text}' has a test, so it belongs to another section than '{NOT_YET}'"


def _faults_of_held(rule: Rule, exists: Collection[str]) -> Iterator[str]:
    if not _NAMES.fullmatch(rule.held_by):
        yield f"{rule.where}: '{rule.text}' is held by tests in backticks with commas between them, not: {rule.held_by}"
        return
    for test in rule.tests:
        if not _TEST.fullmatch(test):
            yield f"{rule.where}: {test} is no name of a test, which is tests/FILE.py::NAME or tests/FILE.py::NAME[ID]"
        elif test not in exists:
            yield f"{rule.where}: there is no test {test}"
    for test in sorted({each for each in rule.tests if rule.tests.count(each) > 1}):
        yield f"{rule.where}: {test} is named twice"


def _repeated(rules: Iterable[Rule]) -> Iterator[str]:
    said: dict[str, Rule] = {}
    for rule in rules:
        first = said.setdefault(" ".join(rule.text.casefold().split()), rule)
        if first is not rule:
            yield f"{rule.where}: '{rule.text}' is said in {first.where} already"


def files(documents: Iterable[Document]) -> set[str]:
    """The files whose tests are named, to be collected."""
    tests = (test for document in documents for rule in document.rules for test in rule.tests)
    return {test.split("::")[0] for test in tests if _TEST.fullmatch(test)}


def spellings(collected: Iterable[str]) -> set[str]:
    """All ways to name the collected tests: as they are, without their server, and without their parameters."""
    names: set[str] = set()
    for test in collected:
        names |= {test, test.split("[")[0], _SERVER.sub("[", test, count=1).removesuffix("[]")}
    return names
