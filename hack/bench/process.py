"""The manager as a process: start, recovery from SIGKILL, memory, processor time; and `make demo` in a fresh clone."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import statistics
import subprocess
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER
from hack.bench.local_processes import local_processes
from hack.bench.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.bench.local_processes import LocalProcesses
    from upgrade_manager.kube.transport import Request, Stream, Transport

#: Starts that are measured; the median counts.
STARTS = 5
#: Seconds after which a manager without a plan or with a finished one is idle.
SETTLE = 3.0
_KIB_PER_MB = 1000 * 1000 / 1024
#: Fields of /proc/PID/stat after the name of the program: user and system time in ticks.
_USER, _SYSTEM = 11, 12
MIB_PER_MB = 1000 * 1000 / 1024 / 1024


def measure() -> list[Figure]:
    """Run two upgrades of three nodes, and kill the manager in the second.

    A manager imports what reconciles plans with the first one, which is therefore a plan that is not accepted.
    """
    # The killed manager disconnects in the middle of a response, which the gateway would log.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    return [*asyncio.run(_uninterrupted()), asyncio.run(_killed())]


async def _uninterrupted() -> list[Figure]:
    async with local_processes(scenario="three-nodes", time_scale=0.3) as local:
        started = statistics.median([await _start_and_stop(local) for _ in range(STARTS)])
        local.recorder.exchanges.clear()
        manager = await local.start_manager()
        await asyncio.sleep(SETTLE)
        idle, used = memory(manager.process.pid, "VmRSS"), processor_time(manager.process.pid)
        await local.refuse_plan()
        await asyncio.sleep(SETTLE)
        loaded, used = processor_time(manager.process.pid) - used, processor_time(manager.process.pid)
        await local.create_plan()
        await local.succeeded()
        watches = {(e.request.path, _selectors(e.request)) for e in local.recorder.of(MANAGER) if e.watches}
        await asyncio.sleep(SETTLE)
        peak, used = memory(manager.process.pid, "VmHWM"), processor_time(manager.process.pid) - used
    return [
        Figure(name="start to the last watch", value=started, unit="s", target=0.45),
        Figure(name="watches opened in a three-node upgrade", value=len(watches), unit="", target=16),
        Figure(name="processor time of the first plan, which is refused", value=loaded, unit="s", target=0.4),
        Figure(name="processor time of a three-node upgrade", value=used, unit="s", target=0.42),
        Figure(name="resident memory, idle", value=idle * MIB_PER_MB, unit="MiB", target=50),
        Figure(name="resident memory, peak of a three-node upgrade", value=peak * MIB_PER_MB, unit="MiB", target=60),
    ]


async def _start_and_stop(local: LocalProcesses) -> float:
    """Return the seconds from the start of a process to its last watch. Probes share results, so they show it late."""
    local.recorder.exchanges.clear()
    began = asyncio.get_running_loop().time()
    manager = await local.start_manager()
    await asyncio.sleep(SETTLE)
    await manager.stop()
    return max(exchange.ended for exchange in local.recorder.of(MANAGER) if exchange.watches) - began


def _selectors(request: Request) -> tuple[str, ...]:
    return tuple(value for key, value in request.query if key in {"labelSelector", "fieldSelector"})


def memory(pid: int, field: str) -> float:
    """Return MB from /proc: VmRSS is the resident memory, VmHWM its peak."""
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) / _KIB_PER_MB if found else 0.0


def processor_time(pid: int) -> float:
    """Return the seconds of processor time from /proc so far, in user mode and in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")


class JobCreateTrap(Recorder):
    """Withholds the response to the creation of the first node's Job, so that the manager can be killed there."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.triggered = asyncio.Event()
        #: A status was written after that.
        self.recovered = asyncio.Event()

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Pass on; the Job is created, its response is withheld."""
        async with super().open(request) as stream:
            if not self.triggered.is_set() and request.method == "POST" and b"pre-drain" in request.body:
                self.triggered.set()
                await asyncio.Event().wait()
            if self.triggered.is_set() and self.exchanges[-1].writes_status:
                self.recovered.set()
            yield stream


async def _killed() -> Figure:
    """Measure up to the next status write, which depends on the manager alone: the Job exists."""
    loop = asyncio.get_running_loop()
    async with local_processes(scenario="three-nodes", time_scale=0.3, recorder=JobCreateTrap) as local:
        manager = await local.start_manager()
        await local.create_plan()
        if not isinstance(local.recorder, JobCreateTrap):
            raise TypeError(local.recorder)
        await local.recorder.triggered.wait()
        manager.process.kill()
        killed = loop.time()
        async with asyncio.TaskGroup() as group:
            group.create_task(local.start_manager())
            await local.recorder.recovered.wait()
            took = loop.time() - killed
        await local.succeeded()
    return Figure(name="SIGKILL and restart to the next status write", value=took, unit="s", target=1)


ROOT = Path(__file__).parents[2]
#: Environment variables that are kept: besides these, those that configure pip and TLS.
KEPT = ("PATH", "LANG", "TERM", "TMPDIR")
KEPT_PREFIXES = ("PIP_", "SSL_", "http_", "https_", "HTTP_", "HTTPS_", "no_proxy", "NO_PROXY")


def measure_demo() -> list[Figure]:
    """Clone and run. Raises CalledProcessError when the demo fails."""
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        clone, home = Path(folder) / "clone", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        began = time.monotonic()
        subprocess.run(["make", "demo"], cwd=clone, env=_environment(home), check=True, capture_output=True)
        took = time.monotonic() - began
    return [Figure(name="make demo on a fresh clone, set-up included", value=took, unit="s", target=60)]


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    own = str(ROOT / ".venv")
    path = os.pathsep.join(part for part in kept.get("PATH", "").split(os.pathsep) if not part.startswith(own))
    return {**kept, "PATH": path, "HOME": str(home)}
