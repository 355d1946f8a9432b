"""Two replicas as processes, whose leader is killed, suspended, cut off and stopped: never two that write."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from hack.apiserver.http_poster import HttpPoster
from hack.apiserver.identity import ADMIN
from hack.apiserver.server import ApiServer
from hack.cluster.gateway import Gateway
from hack.control_plane.certificates import Authority, server_context
from hack.control_plane.kubeconfig import kubeconfig, write
from hack.fast_time import FastTime
from hack.faults.breakable_transport import BreakableTransport
from hack.faults.middleware import Middleware
from hack.faults.rules import Delay, Match, Rule
from tests.support.cluster.kubectl import CRDS, PLANS, manifest
from tests.support.managers.leader_ledger import LeaderLedger, WatchedWrites
from tests.support.programs.polling import eventually
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.crd import crd_manifest
from upgrade_manager.kube.transport import Transport

pytestmark = [pytest.mark.real_loop, pytest.mark.full]

NAMES = ("a", "b")
#: Seconds of the managers in a real one: a lease of 15 s expires in 2.5 s.
RATE = 6
SECONDS = 60.0
#: Seconds of the managers for which one is suspended, and watched afterwards.
SUSPENDED, RESUMED = 60, 20
#: Makes the clocks of the replicas differ, by hours.
SKEW = timedelta(hours=3)

#: A replica that was suspended learns late that it has lost the lease, and has changes of plans to handle before.
SLOW_LEASE = Rule(match=Match(resource="leases.*"), action=Delay(least=1.0, most=1.0))


class Replica:
    """A process of the manager behind its own gateway; it is started again when it ends, as by a kubelet."""

    def __init__(self, name: str, *, folder: Path, server: Transport, ledger: LeaderLedger) -> None:
        self.name = name
        self.line = BreakableTransport(server)
        self.faults = Middleware(self.line, random=Random(1))
        self.writes = WatchedWrites(self.faults, ledger=ledger, sender=lambda _: name)
        self._folder = folder
        self._process: asyncio.subprocess.Process

    def signal(self, number: signal.Signals) -> None:
        # It may have ended, and be about to start again.
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def run(self, *, authority: Authority, tls: ssl.SSLContext) -> None:
        async with Gateway(self.writes, tls=tls) as gateway:
            path = self._folder / f"kubeconfig-{self.name}"
            write(path, kubeconfig(server=gateway.url, authority=authority.certificate, token="admin"))  # noqa: S106  # on loopback only
            time = FastTime(rate=RATE, equal_at=datetime.now(UTC) + SKEW * NAMES.index(self.name))
            command = [sys.executable, "-m", "hack.fast_time", *time.arguments(), "run", f"--kubeconfig={path}"]
            off = [f"--{server}-bind-address=0" for server in ("metrics", "health-probe", "webhook")]
            while True:
                self._process = await asyncio.create_subprocess_exec(*command, "--leader-elect", *off)
                try:
                    await self._process.wait()
                finally:
                    if self._process.returncode is None:
                        self._process.kill()
                        await self._process.wait()


class Replicas:
    """Both replicas, and a user who keeps the leader busy."""

    def __init__(self, folder: Path) -> None:
        self.ledger = LeaderLedger()
        self.server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1), poster=HttpPoster(services={}))
        self.server.authenticator.register("admin", ADMIN)
        self.by_name = {name: Replica(name, folder=folder, server=self.server, ledger=self.ledger) for name in NAMES}
        self._user = RawClient(self.server)

    @property
    def leader(self) -> Replica:
        return self.by_name[self.ledger.leader]

    async def create_plans(self) -> None:
        """Create plans without end: the leader records that they cannot start."""
        await self._user.post(CRDS, crd_manifest())
        await self._user.post("/api/v1/namespaces", {"metadata": {"name": "harvester-system"}})
        number = 0
        while True:
            await self._user.post(PLANS, manifest(f"plan-{number}"))
            number += 1
            await asyncio.sleep(0.1)

    async def until_another_writes(self, identity: str) -> None:
        """Wait until another process has the lease, and writes."""
        count = 0

        async def has_written() -> bool:
            nonlocal count
            if self.ledger.identity in {"", identity}:
                return False
            count = count or len(self.ledger.writers)
            return len(self.ledger.writers) > count

        await eventually(has_written, seconds=SECONDS)


@contextlib.asynccontextmanager
async def replicas(folder: Path) -> AsyncIterator[Replicas]:
    authority = Authority(now=datetime.now(UTC))
    tls = server_context(authority.server(), folder)
    found = Replicas(folder)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(found.server.run()), group.create_task(found.create_plans())]
        tasks += [group.create_task(one.run(authority=authority, tls=tls)) for one in found.by_name.values()]
        try:
            await found.until_another_writes("")
            yield found
        finally:
            for task in tasks:
                task.cancel()
    found.server.close()


@pytest.mark.rule("pipeline: of two replicas only the holder of the lease writes")
async def test_only_the_holder_of_the_lease_writes(tmp_path: Path) -> None:
    async with replicas(tmp_path) as found:
        killed, identity = found.leader, found.ledger.identity
        killed.signal(signal.SIGKILL)
        await found.until_another_writes(identity)

        suspended, identity = found.leader, found.ledger.identity
        suspended.signal(signal.SIGSTOP)
        await found.until_another_writes(identity)
        await asyncio.sleep(SUSPENDED / RATE)
        suspended.faults.add(SLOW_LEASE)
        suspended.signal(signal.SIGCONT)
        await asyncio.sleep(RESUMED / RATE)
        suspended.faults.remove(SLOW_LEASE)

        cut, identity = found.leader, found.ledger.identity
        cut.line.cut()
        await found.until_another_writes(identity)
        cut.line.mend()

        identity = found.ledger.identity
        found.leader.signal(signal.SIGTERM)
        await found.until_another_writes(identity)
    assert found.ledger.violations == []
    assert {*found.ledger.writers} == {*NAMES}
