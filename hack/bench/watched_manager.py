"""A manager as a process, seen from outside: its metrics, its memory, and how long its event loop was not there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from hack.bench.desk import BenchError, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from hack.demo.processes import Child, Family

#: Seconds between two looks.
TICK = 0.02
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Account:
    """What it has used up so far."""

    requests: float
    #: Seconds of processor time.
    processor: float


@dataclass(frozen=True, slots=True)
class Step:
    """One step of its event loop, in seconds."""

    #: Since its start.
    at: float
    wall: float
    processor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedManager:
    """Runs from `start` to `stop`."""

    child: Child
    report: Path
    url: str

    @classmethod
    async def start(cls, family: Family, *, kubeconfig: Path, repo_url: str) -> WatchedManager:
        """Start it, without waiting for anything."""
        port = free_port()
        report = family.folder / f"stalls-{port}.json"
        command = [sys.executable, "-m", "hack.bench.stalls", str(report), "run", "--kubeconfig", str(kubeconfig)]
        command += ["--repo-url", repo_url, "--health-probe-bind-address=0", "--metrics-secure=false"]
        command += [f"--metrics-bind-address=127.0.0.1:{port}"]
        child = await family.start("manager", command)
        return cls(child=child, report=report, url=f"http://127.0.0.1:{port}/metrics")

    async def has_looked(self) -> None:
        """Wait until it has looked at the plan once, for which all its caches had to be filled."""
        async with asyncio.timeout(PATIENCE):
            while True:
                if (await self._samples()).get("controller_runtime_reconcile_total"):
                    return
                await asyncio.sleep(TICK)

    async def account(self) -> Account:
        """What it has used up."""
        samples = await self._samples()
        return Account(samples["rest_client_requests_total"], samples["process_cpu_seconds_total"])

    async def stop(self) -> list[Step]:
        """Stop it; the longer steps of its event loop."""
        await self.child.stop()
        return [Step(*step) for step in json.loads(self.report.read_text())]

    async def _samples(self) -> dict[str, float]:
        """The sums of all metrics, over whatever labels they have; nothing while it does not answer."""
        if self.child.process.returncode is not None:
            raise BenchError(f"{self.child.ending()}\n{self.child.tail(20)}")
        sums: dict[str, float] = {}
        with contextlib.suppress(aiohttp.ClientConnectionError):
            async with aiohttp.ClientSession() as http, http.get(self.url) as answer:
                for family in text_string_to_metric_families(await answer.text()):
                    for sample in family.samples:
                        sums[sample.name] = sums.get(sample.name, 0) + sample.value
        return sums
