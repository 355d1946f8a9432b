"""What actors know of the cluster."""

from __future__ import annotations

import asyncio
from random import Random

from hack.actors.caches import Caches
from hack.faults.breakable_transport import BreakableTransport
from tests.support.server.apiserver import make_server
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import SECRETS

#: Seconds without an API server, more than a reader is patient for.
AWAY = 20.0


async def test_seen_waits_for_a_write_through_a_watch_outage() -> None:
    server = make_server()
    line, writer = BreakableTransport(server), Client(server, user_agent="writer", random=Random(1))
    caches = Caches(Client(line, user_agent="reader", random=Random(1)), random=Random(1))
    cache = caches.of(SECRETS)
    running = asyncio.create_task(caches.run())
    await caches.synced()
    line.cut()
    written = await writer.create(SECRETS, {"metadata": {"name": "a", "namespace": "default"}})
    asyncio.get_running_loop().call_later(AWAY, line.mend)
    await cache.seen(written)
    assert cache.store.get("a", "default") is not None
    running.cancel()
    await asyncio.wait([running])
