"""How soon each phase begins when the one before has what it waits for, over HTTPS on the embedded server."""

from __future__ import annotations

import asyncio
import statistics
from typing import TYPE_CHECKING

from hack.bench.desk import MANAGER
from hack.bench.figure import Figure
from hack.bench.phase_changes import AWAITED, phase_changes
from hack.bench.reaction import over_https

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.api.phases import PhaseName

SCENARIO = "three-nodes"
#: Of the scenario's durations: quick, and yet nothing happens at the same time as everything else.
SCALE = 0.3
#: Upgrades, all of which count.
RUNS = 5
#: Milliseconds that a change may take.
AIM = 50


def measure() -> list[Figure]:
    """Upgrade three nodes several times in real time."""
    return figures([_run() for _ in range(RUNS)], where="embedded")


def _run() -> dict[PhaseName, float]:
    return phase_changes(asyncio.run(over_https(SCENARIO, scale=SCALE)).exchanges, manager=MANAGER)


def figures(runs: Sequence[Mapping[PhaseName, float]], *, where: str) -> list[Figure]:
    """The worst of each phase's end, and the median of all; raises KeyError where a run lacks one."""
    ends = {phase: [1000 * run[phase] for run in runs] for phase in AWAITED}
    middle = statistics.median(value for values in ends.values() for value in values)
    return [
        Figure(name=f"{where}: phase changes, median of all", value=middle, unit="ms", aim=AIM),
        *(
            Figure(name=f"{where}: {phase} ready to the next write, worst", value=max(values), unit="ms", aim=AIM)
            for phase, values in ends.items()
        ),
    ]
