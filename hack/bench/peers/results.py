"""The figures of the controllers that are compared: medians of their runs, as a table and relative to each other."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.bench.catalogue import Figure, number
from hack.bench.peers.environments import OWN, PEERS, RAW

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a controller; times are in seconds, memory in MiB."""

    peer: str
    #: From the process's start until each object was reconciled once: wall time, and processor time.
    synced: float
    processor: float
    #: Reconciles for each second of processor time, without the start of the interpreter.
    events: float
    #: Resident, when all objects were reconciled, and after all changes.
    memory: float
    memory_after: float
    #: From each paced change to the patch of its status.
    reactions: tuple[float, ...]
    #: Processor time of each change.
    paced: float
    burst: float
    #: From the first change of the burst to its last status, and from the last change.
    whole_burst: float
    lag: float
    requests: int

    def summary(self) -> str:
        """Return the run's figures for people who watch."""
        return ", ".join(f"{row.name} {number(row.value([self]))}" for row in ROWS)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table, and how its value comes from the runs of a controller."""

    name: str
    unit: str
    value: Callable[[Sequence[Run]], float]
    #: False where more is better.
    at_most: bool = True

    @property
    def title(self) -> str:
        """Return the name with the unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


def _median(of: Callable[[Run], float]) -> Callable[[Sequence[Run]], float]:
    return lambda runs: statistics.median(of(run) for run in runs)


def _percentile(percent: int) -> Callable[[Run], float]:
    return lambda run: _MS * statistics.quantiles(run.reactions, n=100, method="inclusive")[percent - 1]


ROWS = (
    Row("start to all objects reconciled", "s", _median(lambda run: run.synced)),
    Row("processor time until then", "s", _median(lambda run: run.processor)),
    Row("objects reconciled, one core", "/s", _median(lambda run: run.events), at_most=False),
    Row("memory when all are reconciled", "MiB", _median(lambda run: run.memory)),
    Row("memory after 800 changes", "MiB", _median(lambda run: run.memory_after)),
    Row("change to patch, median", "ms", _median(_percentile(50))),
    Row("change to patch, p99", "ms", _median(_percentile(99))),
    Row("processor time of a paced change", "ms", _median(lambda run: _MS * run.paced)),
    Row("processor time of a change in a burst", "ms", _median(lambda run: _MS * run.burst)),
    Row("first change of the burst to its last status", "s", _median(lambda run: run.whole_burst)),
    Row("last change of the burst to its last status", "s", _median(lambda run: run.lag)),
    Row("requests", "", _median(lambda run: run.requests)),
)


def medians(runs: Sequence[Run]) -> dict[str, list[float]]:
    """Return the values of ROWS by controller, in the order of PEERS."""
    grouped = {name: [run for run in runs if run.peer == name] for name in PEERS}
    return {name: [row.value(found) for row in ROWS] for name, found in grouped.items() if found}


def table(runs: Sequence[Run]) -> str:
    """Return the medians as a Markdown table."""
    columns = medians(runs)
    titles = [PEERS[name].title for name in columns]
    lines = [f"| | {' | '.join(titles)} |", "|---|" + "---:|" * len(titles)]
    for place, row in enumerate(ROWS):
        values = " | ".join(number(values[place]) for values in columns.values())
        lines.append(f"| {row.title} | {values} |")
    return "\n".join(lines)


def figures(runs: Sequence[Run], *, server: str) -> list[Figure]:
    """Return the values of this project relative to the best other library's; none without one."""
    columns = medians(runs)
    others = [values for name, values in columns.items() if name not in {OWN, RAW}]
    if OWN not in columns or not others:
        return []
    return [
        Figure(
            name=f"{server}, over the best other: {row.name}",
            value=columns[OWN][place] / (min if row.at_most else max)(values[place] for values in others),
            unit="",
            target=1,
            at_most=row.at_most,
        )
        for place, row in enumerate(ROWS)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The behaviour of a controller under a fault; times are in seconds."""

    peer: str
    fault: str
    #: From the end of the fault until the status was written; None if it was not, or that of a later change was not.
    recovered: float | None
    #: From the begin of the fault until the controller has ended; None while it runs.
    ended: float | None
    #: From the begin of the fault until the recovery, the end, or the limit.
    requests: int
    #: Seconds in which the controller could have recovered.
    limit: float

    @property
    def kind(self) -> str:
        """Return what became of the controller, in a word."""
        if self.recovered is not None:
            return "recovered"
        return "unaware" if self.ended is None else "ended"

    @property
    def text(self) -> str:
        """Return the cell of the table."""
        count = f"{self.requests:,} request{'' if self.requests == 1 else 's'}"
        if self.recovered is not None:
            return f"{number(self.recovered)} s, {count}"
        if self.ended is not None:
            return f"ends after {number(self.ended)} s, {count}"
        return f"**not** in {number(self.limit)} s, {count}"


def behaviour_table(outcomes: Sequence[Outcome]) -> str:
    """Return a row for each fault and a column for each controller, as a Markdown table."""
    cells = {(outcome.fault, outcome.peer): outcome.text for outcome in outcomes}
    peers = list(dict.fromkeys(outcome.peer for outcome in outcomes))
    lines = [f"| | {' | '.join(PEERS[peer].title for peer in peers)} |", "|---" * (len(peers) + 1) + "|"]
    faults = dict.fromkeys(outcome.fault for outcome in outcomes)
    lines += [f"| {fault} | {' | '.join(cells[fault, peer] for peer in peers)} |" for fault in faults]
    return "\n".join(lines)
