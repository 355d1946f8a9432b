"""How long an informer takes to know ten thousand objects of a real API server: streamed, and listed as before."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from hack.bench.figure import Figure
from hack.bench.stalls import WatchedSelector
from hack.control_plane.assets import find_assets
from hack.control_plane.control_plane import ADMIN, ControlPlane
from hack.control_plane.direct import direct
from upgrade_manager.cli import gc_tuning
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

OBJECTS, SIZE = 10_000, 5_000
#: Requests at a time when they are made.
AT_ONCE = 16
#: Of each kind, by turns; the fastest counts, because the machine can only make things slower.
RUNS = 5
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Filled:
    """How it went."""

    seconds: float
    #: Seconds of processor time in the event loop's longest step; the wall's would tell who else was at work, too.
    step: float


def measure() -> list[Figure]:
    """Fill a server, and fill informers from it. Raises AssetsError."""
    gc_tuning.collect_less_often()
    with ControlPlane(find_assets(os.environ)) as plane:
        asyncio.run(_plant(plane))
        runs = [(_filled(plane, streamed=True), _filled(plane, streamed=False)) for _ in range(RUNS)]
    streamed, listed = ([run[which] for run in runs] for which in (0, 1))
    took = [min(one.seconds for one in kind) for kind in (streamed, listed)]
    step = [min(one.step for one in kind) for kind in (streamed, listed)]
    return [
        Figure(name="10,000 objects of 5 kB into an informer, streamed", value=took[0], unit="s", aim=3),
        Figure(name="the same, as a multiple of a list and its watch", value=took[0] / took[1], unit="", aim=1.5),
        Figure(name="longest step of the loop meanwhile, streamed", value=_MS * step[0], unit="ms", aim=50),
        Figure(name="the same, as a multiple of the list's", value=step[0] / step[1], unit="", aim=0.5),
    ]


def _filled(plane: ControlPlane, *, streamed: bool) -> Filled:
    selector = WatchedSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        seconds = runner.run(_fill(plane, streamed=streamed))
    return Filled(seconds, max((processor for _, _, processor in selector.steps), default=0.0))


async def _fill(plane: ControlPlane, *, streamed: bool) -> float:
    async with AsyncExitStack() as stack:
        client = _client(await stack.enter_async_context(direct(plane, token=ADMIN.token)))
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


async def _plant(plane: ControlPlane) -> None:
    places = asyncio.Semaphore(AT_ONCE)
    async with AsyncExitStack() as stack:
        client = _client(await stack.enter_async_context(direct(plane, token=ADMIN.token)))

        async def plant(number: int) -> None:
            async with places:
                await client.create(CONFIG_MAPS, _config_map(number))

        async with asyncio.TaskGroup() as group:
            for number in range(OBJECTS):
                group.create_task(plant(number))


def _client(transport: Transport) -> Client:
    return Client(transport, user_agent="bench", random=Random(0))


def _config_map(number: int) -> Object:
    metadata = {"name": f"settings-{number}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"settings": "x" * SIZE}}
