"""The time in which an informer syncs ten thousand objects of a real API server: streamed, and listed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from hack.bench.catalogue import Figure
from hack.bench.loop_steps import StepSelector
from hack.control_plane.assets import find_assets
from hack.control_plane.backend import direct
from hack.control_plane.control_plane import ADMIN, ControlPlane
from upgrade_manager.cli import gc_tuning, tls_buffers
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object

OBJECTS, SIZE = 10_000, 5_000
#: Of each kind, alternating; the fastest counts, because other programs only make it slower.
RUNS = 5
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Sync:
    """The wall time until an informer has synced, and the processor time of the event loop's longest step."""

    seconds: float
    step: float


def measure() -> list[Figure]:
    """Fill a server, and sync informers with it. Raises AssetsError."""
    gc_tuning.collect_less_often()
    tls_buffers.use_small_buffers()
    with ControlPlane(find_assets(os.environ)) as plane:
        asyncio.run(_create_objects(plane))
        runs = [(_sync(plane, streamed=True), _sync(plane, streamed=False)) for _ in range(RUNS)]
    streamed, listed = ([run[which] for run in runs] for which in (0, 1))
    took = [min(one.seconds for one in kind) for kind in (streamed, listed)]
    step = [min(one.step for one in kind) for kind in (streamed, listed)]
    return [
        Figure(name="10,000 objects of 5 kB into an informer, streamed", value=took[0], unit="s", target=3),
        Figure(name="the same, as a multiple of a list and its watch", value=took[0] / took[1], unit="", target=1.5),
        Figure(name="longest step of the loop meanwhile, streamed", value=_MS * step[0], unit="ms", target=50),
        Figure(name="the same, as a multiple of the list's", value=step[0] / step[1], unit="", target=0.5),
    ]


def _sync(plane: ControlPlane, *, streamed: bool) -> Sync:
    selector = StepSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        seconds = runner.run(_run_informer(plane, streamed=streamed))
    return Sync(seconds, max((processor for _, processor in selector.steps), default=0.0))


async def _run_informer(plane: ControlPlane, *, streamed: bool) -> float:
    async with _client(plane) as client:
        if not streamed:
            client.watch_list_support.mark_unsupported()
        informer = Informer(client, Selection(resource=CONFIG_MAPS, namespace="default"), random=Random(0))
        began = time.perf_counter()
        task = asyncio.create_task(informer.run())
        await informer.wait_for_sync()
        took = time.perf_counter() - began
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return took


async def _create_objects(plane: ControlPlane) -> None:
    async with _client(plane) as client:
        await run_all(*(client.create(CONFIG_MAPS, _config_map(number)) for number in range(OBJECTS)))


@contextlib.asynccontextmanager
async def _client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with direct(plane, token=ADMIN.token) as transport:
        yield Client(transport, user_agent="bench", random=Random(0))


def _config_map(number: int) -> Object:
    metadata = {"name": f"settings-{number}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"settings": "x" * SIZE}}
