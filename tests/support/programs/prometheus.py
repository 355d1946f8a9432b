"""A real Prometheus that scrapes managers as the ServiceMonitor describes."""

from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from hack.demo.processes import Child, ProcessGroup
from tests.support.programs.polling import eventually
from tests.support.programs.process_result import ProcessResult

#: Seconds until it has started, and until it has what a test waits for.
TIMEOUT = 60.0
#: Seconds between two scrapes, and between two evaluations of the rules.
INTERVAL = 1.0
_ADDRESS = re.compile(r'msg="Listening on".* address=(\S+)')


def program(name: str) -> str:
    """Return the program on the PATH, else the one that `make prometheus` links beside the interpreter."""
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)]))
    assert found, f"{name} is missing: run `make prometheus` (once)"
    return found


@dataclass(frozen=True, slots=True)
class Sample:
    """One element of an instant vector."""

    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running server."""

    url: str
    http: aiohttp.ClientSession

    async def query(self, expression: str) -> list[Sample]:
        """Evaluate the expression now, and return what is a number."""
        data = await self.get("query", query=expression)
        found = [Sample(one["metric"], float(one["value"][1])) for one in data["result"]]
        return [sample for sample in found if not math.isnan(sample.value)]

    async def until(self, expression: str) -> list[Sample]:
        """Wait until the expression has a result. Raises TimeoutError."""
        found: list[Sample] = await eventually(lambda: self.query(expression), seconds=TIMEOUT, pause=INTERVAL / 10)
        return found

    async def until_empty(self, expression: str) -> None:
        """Wait until the expression has no result. Raises TimeoutError."""

        async def is_empty() -> bool:
            return not await self.query(expression)

        await eventually(is_empty, seconds=TIMEOUT, pause=INTERVAL / 10)

    async def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of the API."""
        async with self.http.get(f"{self.url}/api/v1/{path}", params=parameters) as response:
            answer = await response.json()
        assert answer["status"] == "success", answer
        return answer["data"]


@asynccontextmanager
async def prometheus(children: ProcessGroup, config: Mapping[str, Any]) -> AsyncIterator[Prometheus]:
    """Start Prometheus on a free port, with its data in the group's folder."""
    path = children.folder / "prometheus.yaml"
    intervals = dict.fromkeys(("scrape_interval", "evaluation_interval"), f"{INTERVAL:g}s")
    path.write_text(yaml.safe_dump({**config, "global": intervals}))
    command = [program("prometheus"), f"--config.file={path}", "--web.listen-address=127.0.0.1:0"]
    command += [f"--storage.tsdb.path={children.folder / 'tsdb'}"]
    child = await children.start("prometheus", command)
    url = await _url(child)
    async with aiohttp.ClientSession() as http:
        assert await child.is_ready(f"{url}/-/ready", interval=INTERVAL / 10), child.tail(20)
        yield Prometheus(url, http)


async def _url(child: Child) -> str:
    async def address() -> str:
        assert child.process.returncode is None, child.tail(20)
        found = _ADDRESS.search(child.log.read_text(errors="replace"))
        return found[1] if found else ""

    return f"http://{await eventually(address, seconds=TIMEOUT)}"


async def promtool(*arguments: str, stdin: bytes = b"") -> ProcessResult:
    """Run promtool to its end."""
    pipe = asyncio.subprocess.PIPE
    tool = program("promtool")
    process = await asyncio.create_subprocess_exec(tool, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    out, err = await process.communicate(stdin)
    return ProcessResult(process.returncode or 0, out.decode(), err.decode())
