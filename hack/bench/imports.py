"""Processor time and memory of the imports of the manager and of the webhook, by package."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from hack.bench.catalogue import Figure
from hack.bench.local_processes import PROGRAM

#: Processes that are measured; the medians count.
RUNS = 7
#: The default Deployment serves no webhook. A manager without a plan, one with a plan, and the webhook alone.
IDLE, WEBHOOK = ("run", "--webhook-bind-address=0"), ("webhook",)
MANAGER = ("--with-plan", *IDLE)
#: Packages below both have no rows of their own.
_SMALL = (0.3, 5.0)
_MIB = 1 << 20
_HEAD = ("| package | memory, MiB | processor time, ms | modules |", "|---|---:|---:|---:|")


def measure() -> list[Figure]:
    """Print the table of the manager's packages, and return the sums, and those of the webhook's process."""
    idle, manager, webhook = (_runs(*arguments) for arguments in (IDLE, MANAGER, WEBHOOK))
    print(f"\n{table(_packages(manager))}\n", flush=True)
    return [
        Figure(name="loading the idle manager, processor time", value=_median(idle, "seconds"), unit="s", target=0.3),
        Figure(name="memory of the idle manager", value=_median(idle, "bytes") / _MIB, unit="MiB", target=45),
        Figure(name="loading the manager, processor time", value=_median(manager, "seconds"), unit="s", target=0.5),
        Figure(name="memory of the loaded manager", value=_median(manager, "bytes") / _MIB, unit="MiB", target=55),
        Figure(name="loading the webhook, processor time", value=_median(webhook, "seconds"), unit="s", target=0.45),
        Figure(name="memory of the loaded webhook", value=_median(webhook, "bytes") / _MIB, unit="MiB", target=51),
    ]


def loaded(*arguments: str, python: str = sys.executable, environ: dict[str, str] | None = None) -> dict[str, Any]:
    """Return what one process has loaded that runs a command: modules, and what each package took."""
    script = str(Path(__file__).with_name("loaded.py"))
    # Without the directory of the script, whose webhook.py would hide the package.
    command = [python, "-P", script, *arguments]
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(packages: dict[str, tuple[float, float, int]]) -> str:
    """Return the rows of the packages, by name MiB, ms and modules; the last row has all small ones."""
    is_large = {name: row[0] >= _SMALL[0] or row[1] >= _SMALL[1] for name, row in packages.items()}
    rows = sorted(((name, *packages[name]) for name in packages if is_large[name]), key=lambda row: -row[1])
    small = [row for name, row in packages.items() if not is_large[name]]
    mib, ms, modules = (sum(row[column] for row in small) for column in range(3))
    rows.append((f"{len(small)} others", mib, ms, int(modules)))
    return "\n".join((*_HEAD, *(f"| {name} | {mib:.2f} | {ms:.1f} | {count} |" for name, mib, ms, count in rows)))


def _runs(*arguments: str) -> list[dict[str, Any]]:
    program = os.environ.get(PROGRAM)
    python = str(Path(program).with_name("python")) if program else sys.executable
    # The first fills the caches of files and bytecode.
    _, *runs = [loaded(*arguments, python=python) for _ in range(RUNS + 1)]
    return runs


def _median(runs: list[dict[str, Any]], field: str) -> float:
    return float(statistics.median(run[field] for run in runs))


def _packages(runs: list[dict[str, Any]]) -> dict[str, tuple[float, float, int]]:
    """Return the medians of each package, in MiB and ms."""
    medians = {}
    for name in runs[0]["packages"]:
        size, seconds, modules = (
            statistics.median(run["packages"][name][column] for run in runs) for column in range(3)
        )
        medians[name] = size / _MIB, seconds * 1000, int(modules)
    return medians
