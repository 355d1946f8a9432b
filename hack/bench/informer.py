"""Watch events per second of one core, from bytes to an informer's store.

The events are of about 5 kB each, without managedFields. As a program it prints `events_per_second=…` in a process
without other objects.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from string import Template
from time import process_time
from typing import TYPE_CHECKING

from hack.bench.catalogue import Figure
from upgrade_manager.cli import gc_tuning
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import PODS
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change
    from upgrade_manager.kube.transport import Stream

#: Bytes of one read, as from aiohttp under load.
_READ = 128 * 1024
_OBJECTS = 1000
_POD = Template(Path(__file__).with_name("pod.json").read_text(encoding="utf-8"))
_NO_INITIAL_EVENTS = (
    b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":'
    b'{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)


class _Replay:
    """A transport with empty lists, whose watch sends the given data and stays open."""

    status = 200
    headers: Mapping[str, str] = {}  # the protocol's type

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def send(self, request: Request) -> Response:
        """Return an empty list."""
        assert request.method == "GET"  # noqa: S101  # informers only read
        return Response(status=200, body=b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}')

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open the watch."""
        assert request.method == "GET"  # noqa: S101  # informers only read
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bookmark after no initial events, then the data."""
        yield _NO_INITIAL_EVENTS
        for start in range(0, len(self._data), _READ):
            yield self._data[start : start + _READ]
        await asyncio.Event().wait()


def pod(number: int, version: int) -> Object:
    """Return a running Pod of a Deployment, with the usual size and fields."""
    text = _POD.substitute(
        number=f"{number:05d}",
        serial=f"{number:012d}",
        hash=f"{number:064x}",
        version=version,
        ip=number % 250,
        host=number % 50,
        team=number % 10,
    )
    found: Object = json.loads(text)
    return found


def _events(count: int) -> bytes:
    """Return the lines of a watch: each object is added once and then modified."""
    lines = []
    for version in range(count):
        kind = "ADDED" if version < _OBJECTS else "MODIFIED"
        lines.append(json.dumps({"type": kind, "object": pod(version % _OBJECTS, version + 2)}, separators=(",", ":")))
    return ("\n".join(lines) + "\n").encode()


async def _rate(events: int) -> tuple[float, int]:
    """Return events per second of processor time, and the bytes of one."""
    data = _events(events)
    seen = 0
    done = asyncio.Event()

    def count(_: Change) -> None:
        nonlocal seen
        seen += 1
        if seen == events:
            done.set()

    client = Client(_Replay(data), user_agent="bench", random=Random(1))
    informer = Informer(client, Selection(resource=PODS), handlers=(count,), random=Random(1))
    began = process_time()
    task = asyncio.create_task(informer.run())
    await done.wait()
    elapsed = process_time() - began
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return events / elapsed, len(data) // events


def measure() -> list[Figure]:
    """Run this module as a program. Raises CalledProcessError."""
    command = [sys.executable, "-m", "hack.bench.informer"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rate = float(output.rpartition("=")[2])
    return [Figure(name="informer, 5 kB objects, one core", value=rate, unit="events/s", target=15000, at_most=False)]


def main() -> None:
    """Print the best of a few runs, because other programs only make it slower."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    # As the manager does at its start.
    gc_tuning.collect_less_often()
    gc_tuning.freeze()
    runs = [asyncio.run(_rate(options.events)) for _ in range(options.runs)]
    print(f"event_bytes={runs[0][1]}")
    print(f"events_per_second={max(rate for rate, _ in runs):.0f}")


if __name__ == "__main__":
    main()
