"""Reads the managers' Lease for a command, and again while the command follows a plan.

status.py and status_watch.py read by it; display/leader.py says what the Lease means.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE, MANAGER
from upgrade_manager.cli.api_server_check import RESPONSE_TIMEOUT
from upgrade_manager.display.leader import NOT_READ, LeaseReading, leader_row
from upgrade_manager.facts.deployments import is_elected
from upgrade_manager.kube.errors import Forbidden, KubeError, NotFound, Terminal
from upgrade_manager.kube.resources import DEPLOYMENTS, LEASES
from upgrade_manager.runtime.lease import is_led

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from upgrade_manager.kube.client import Client

#: Seconds between two requests. A watch would send each renewal, one every two seconds, and none without a leader.
EVERY = 10.0


class LeaseWatch:
    """The last reading of the Lease. A reading that fails for a while leaves the one before."""

    def __init__(self, client: Client, *, now: Callable[[], datetime]) -> None:
        self.reading = NOT_READ
        self._client = client
        self._now = now

    async def read(self) -> bool:
        """Read the Lease; return True if another manager leads now, or none."""
        before = self._summary()
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                lease = await self._client.get(LEASES, LEASE, namespace=HARVESTER_SYSTEM)
                is_left = not is_led(lease, at=self._now()) and await self._runs_without_election()
        except NotFound:
            self.reading = self._failed(f"lease {HARVESTER_SYSTEM}/{LEASE} does not exist")
        except (KubeError, TimeoutError) as error:
            if isinstance(error, Terminal) or self.reading is NOT_READ:
                self.reading = self._failed(str(error) or f"no response within {RESPONSE_TIMEOUT:.0f} s")
        else:
            self.reading = NOT_READ if is_left else LeaseReading(lease=lease, error="", at=self._now())
        return self._summary() != before

    async def follow(self, on_change: Callable[[], object]) -> None:
        """Read it again and again, and report changes, until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            if await self.read():
                on_change()

    async def _runs_without_election(self) -> bool:
        """Return True for a Lease that leader election left behind; False where the user may not read that."""
        try:
            manager = await self._client.find(DEPLOYMENTS, MANAGER, namespace=HARVESTER_SYSTEM)
        except Forbidden:
            return False
        return manager is not None and not is_elected(manager)

    def _summary(self) -> tuple[str, str]:
        row = leader_row(self.reading, is_needed=False, now=self._now())
        return row.state, row.holder

    def _failed(self, error: str) -> LeaseReading:
        return LeaseReading(lease={}, error=error, at=self._now())
