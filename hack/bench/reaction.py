"""The time from the event of an awaited object to the manager's next write."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hack import scenario as scenarios
from hack.apiserver.identity import ADMIN
from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER, manager, record, run_plan
from hack.cluster.gateway import Gateway
from hack.control_plane.certificates import Authority, server_context
from hack.control_plane.kubeconfig import kubeconfig, write
from hack.simulation import Simulation
from upgrade_manager.api.keys import LABEL_COMPONENT, RKE_POST_DRAIN, RKE_PRE_DRAIN, Component
from upgrade_manager.kube import objects
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hack.bench.recorder import Exchange, Recorder
    from upgrade_manager.kube.objects import Object

SCENARIO = "nodes-16"
#: Of the scenario's durations: short, but without simultaneous events.
SCALE = 0.3
#: A percentile of fewer reactions is meaningless.
MIN_REACTIONS = 50
_TOKEN = "bench"  # noqa: S105  # of a server on loopback


class TooFewReactions(Exception):
    """The measurement itself is broken."""


def measure() -> list[Figure]:
    """Upgrade sixteen nodes in real time."""
    recorder = asyncio.run(over_https(SCENARIO, scale=SCALE))
    os_image = scenarios.load(SCENARIO).release.os_image
    found = [1000 * seconds for seconds in reactions(recorder.exchanges, manager=MANAGER, os_image=os_image)]
    if len(found) < MIN_REACTIONS:
        raise TooFewReactions(f"only {len(found)} reactions")
    p99 = statistics.quantiles(found, n=100)[98]
    return [
        Figure(name="reaction to an awaited object, median", value=statistics.median(found), unit="ms", target=10),
        Figure(name="reaction to an awaited object, p99", value=p99, unit="ms", target=50),
    ]


async def over_https(scenario: str, *, scale: float) -> Recorder:
    """Run an upgrade in real time, with a manager that connects to the embedded server over HTTPS."""
    async with AsyncExitStack() as stack:
        simulation = await stack.enter_async_context(Simulation(scenario, scale=scale))
        recorder = record(simulation)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-bench-")))
        transport = await stack.enter_async_context(await _https(simulation, stack, folder))
        await stack.enter_async_context(manager(simulation, transport))
        await run_plan(simulation)
        return recorder


async def _https(simulation: Simulation, stack: AsyncExitStack, folder: Path) -> HttpTransport:
    now = datetime.now(UTC)
    authority = Authority(now=now)
    simulation.server.authenticator.register(_TOKEN, ADMIN)
    tls = server_context(authority.server(), folder)
    gateway = await stack.enter_async_context(Gateway(simulation.backend.client_transport, tls=tls))
    path = folder / "kubeconfig"
    write(path, kubeconfig(server=gateway.url, authority=authority.certificate, token=_TOKEN))
    config = await load_config(environ={}, now=lambda: now, kubeconfig=str(path))
    return HttpTransport(config)


def reactions(exchanges: Sequence[Exchange], *, manager: str, os_image: str) -> list[float]:
    """Return the seconds from each awaited write of another client to the manager's next write, in order."""
    seen: set[tuple[str, str]] = set()
    waiting_since: list[float] = []
    found = []
    for exchange in sorted(exchanges, key=lambda exchange: exchange.began):
        if not exchange.writes:
            continue
        if exchange.user_agent.startswith(manager):
            if "/events" not in exchange.request.path:
                found += [exchange.began - since for since in waiting_since if since <= exchange.began]
                waiting_since = [since for since in waiting_since if since > exchange.began]
        elif exchange.body and exchange.status < 300:  # noqa: PLR2004  # the write succeeded
            new = set(_awaited(json.loads(exchange.body), os_image=os_image)) - seen
            seen |= new
            waiting_since += [exchange.ended] * len(new)
    return found


def _awaited(obj: Object, *, os_image: str) -> Iterator[tuple[str, str]]:
    """Yield the awaited states that the object has reached: its uid and a name for the state."""
    kind, uid = obj.get("kind"), objects.uid(obj)
    if kind == "VirtualMachineImage" and objects.is_condition_true(obj, "Imported"):
        yield uid, "imported"
    if kind == "Job" and objects.namespace(obj) == "harvester-system" and objects.is_condition_true(obj, "Complete"):
        yield uid, "complete"
    # The Plan skip-off is followed by a wait for RKE2.
    is_last = objects.labels(obj).get(LABEL_COMPONENT) == Component.SKIP_OFF
    if kind == "Plan" and objects.is_condition_true(obj, "Complete") and not is_last:
        yield uid, "complete"
    if kind == "Secret":
        annotations = objects.metadata(obj).get("annotations") or {}
        for key in (RKE_PRE_DRAIN, RKE_POST_DRAIN):
            if annotations.get(key):
                yield uid, f"{key}={annotations[key]}"
    if kind == "Node" and objects.is_condition_true(obj, "Ready") and _os_image(obj) == os_image:
        yield uid, "upgraded"


def _os_image(node: Object) -> str:
    return str(objects.status(node).get("nodeInfo", {}).get("osImage", ""))
