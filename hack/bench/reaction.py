"""How soon the manager acts when what it waits for has come, over HTTPS on the embedded server."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hack.apiserver.identity import ADMIN
from hack.bench.desk import MANAGER
from hack.bench.figure import Figure
from hack.bench.in_process import finished, manager, tap
from hack.bench.reactions import reactions
from hack.cluster import scenario as scenarios
from hack.cluster.certificates import Authority, server_context
from hack.cluster.gateway import Gateway
from hack.cluster.kubeconfig import kubeconfig, write
from hack.simulation import Simulation
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config

if TYPE_CHECKING:
    from hack.bench.recorder import Recorder

SCENARIO = "nodes-16"
#: Of the scenario's durations: quick, and yet nothing happens at the same time as everything else.
SCALE = 0.3
#: Fewer reactions than that are no statistics.
ENOUGH = 50
_TOKEN = "bench"  # noqa: S105  # of a server that lives for a minute on this machine


class TooFew(Exception):
    """The run had hardly any reactions, so the measurement itself is broken."""


def measure() -> list[Figure]:
    """Upgrade sixteen nodes in real time."""
    recorder = asyncio.run(over_https(SCENARIO, scale=SCALE))
    os_image = scenarios.load(SCENARIO).release.os_image
    found = [1000 * seconds for seconds in reactions(recorder.exchanges, manager=MANAGER, os_image=os_image)]
    if len(found) < ENOUGH:
        raise TooFew(f"only {len(found)} reactions")
    return [
        Figure(name="reaction to an awaited object, median", value=statistics.median(found), unit="ms", aim=10),
        Figure(
            name="reaction to an awaited object, p99", value=statistics.quantiles(found, n=100)[98], unit="ms", aim=50
        ),
    ]


async def over_https(scenario: str, *, scale: float) -> Recorder:
    """An upgrade in real time by a manager that reaches the embedded server as one in production does."""
    async with AsyncExitStack() as stack:
        simulation = await stack.enter_async_context(Simulation(scenario, scale=scale))
        recorder = tap(simulation)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-bench-")))
        transport = await stack.enter_async_context(await _https(simulation, stack, folder))
        await stack.enter_async_context(manager(simulation, transport))
        await finished(simulation)
        return recorder


async def _https(simulation: Simulation, stack: AsyncExitStack, folder: Path) -> HttpTransport:
    """The way that a manager in production has to its server."""
    now = datetime.now(UTC)
    authority = Authority(now=now)
    simulation.server.authenticator.register(_TOKEN, ADMIN)
    tls = server_context(authority.server(), folder)
    gateway = await stack.enter_async_context(Gateway(simulation.backend.client_transport, tls=tls))
    path = folder / "kubeconfig"
    write(path, kubeconfig(server=gateway.url, authority=authority.certificate, token=_TOKEN))
    return HttpTransport(await load_config(environ={}, now=lambda: now, kubeconfig=str(path)))
