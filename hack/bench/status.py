"""The command `upgrade-manager status` as a process: an operator waits for it."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hack.bench.catalogue import Figure
from hack.bench.in_process import BenchError
from hack.bench.local_processes import PROGRAM, local_processes

if TYPE_CHECKING:
    from hack.bench.local_processes import LocalProcesses

#: Runs, of which the first fills the caches of files and bytecode, and the median of the others counts.
RUNS = 8


def measure() -> list[Figure]:
    """Run the command beside a cluster whose plan waits for a manager."""
    return asyncio.run(_measure())


async def _measure() -> list[Figure]:
    async with local_processes(scenario="three-nodes", time_scale=1.0) as local:
        await local.create_plan()
        _, *seconds = [await _run(local) for _ in range(RUNS)]
    return [Figure(name="status, from start to print", value=statistics.median(seconds), unit="s", target=0.5)]


async def _run(local: LocalProcesses) -> float:
    program = os.environ.get(PROGRAM) or str(Path(sys.executable).with_name("upgrade-manager"))
    loop = asyncio.get_running_loop()
    began = loop.time()
    process = await asyncio.create_subprocess_exec(
        program, "status", f"--kubeconfig={local.kubeconfig}", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    if process.returncode or not out.startswith(b"UpgradePlan"):
        raise BenchError(f"status ended with {process.returncode}: {out.decode()}")
    return loop.time() - began
