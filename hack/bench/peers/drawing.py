"""Draws the plots of docs/performance.md; `plots` is the program that does it, in a separate environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hack.bench.catalogue import number
from hack.bench.peers.environments import FOLDER, PEERS, PLOT_LOCK, ROOT, programs
from hack.bench.peers.results import ROWS, medians

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.bench.peers.results import Outcome, Run

#: Environment variable with the folder of the plots; by default they are not those of the documentation.
PLOTS = "BENCH_PLOTS"


def draw(name: str, data: dict[str, Any]) -> None:
    """Draw a plot, and print its path. Raises CalledProcessError."""
    folder = Path(os.environ.get(PLOTS) or FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    source, plot = FOLDER / f"{name}.json", folder / f"peers-{name}.svg"
    source.write_text(json.dumps(data, indent=2))
    command = [str(programs(PLOT_LOCK) / "python"), "-m", "hack.bench.peers.plots", name, str(source), str(plot)]
    subprocess.run(command, check=True, cwd=ROOT)
    print(plot, flush=True)


def speed_data(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the data of the plot `speed`: the medians of each row, for each controller."""
    columns = medians(runs)
    rows = [
        {"name": row.title, "values": values, "labels": [number(value) for value in values]}
        for row, *values in zip(ROWS, *columns.values(), strict=True)
    ]
    return {"peers": [PEERS[name].title for name in columns], "rows": rows}


def fault_data(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the data of the plot `faults`: a row for each fault, with a cell for each controller."""
    rows: dict[str, list[dict[str, str]]] = {}
    for outcome in outcomes:
        cell = {"text": outcome.text.replace("*", ""), "outcome": outcome.kind}
        rows.setdefault(outcome.fault, []).append(cell)
    peers = dict.fromkeys(outcome.peer for outcome in outcomes)
    return {
        "peers": [PEERS[name].title for name in peers],
        "rows": [{"name": name, "cells": cells} for name, cells in rows.items()],
    }
