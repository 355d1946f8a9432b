"""Incidents: an upgrade of a simulated cluster that something holds up, and what the API server then has of it.

incident_table.py has the incidents. tests/display draws their screens, and tests/cli runs the commands on them.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.api.blockers import read_blockers
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE
from upgrade_manager.api.phases import FAILED
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.cli.plans import events_of
from upgrade_manager.display.leader import LeaseReading
from upgrade_manager.display.model import View
from upgrade_manager.display.view import build
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import EVENTS, LEASES

Damage: TypeAlias = Callable[[UpgradeRun], Awaitable[None]]

#: Seconds for which a blocker is there, or the manager is dead, before the screen is drawn.
LASTS, DEAD_FOR = 90.0, 540.0
#: Seconds until a blocker must be there.
_TIMEOUT = 2 * 3600.0
#: Texts that random numbers make, and ones of the same length in their place.
_UUID = (8, 4, 4, 4, 12)
_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]"
_RANDOM = (
    (re.compile(rf"(?<=-with-)([0-9a-f]+)-{_SUFFIX}{{5}}\b"), lambda found: "0" * len(found[1]) + "-xxxxx"),
    (re.compile(r"(?<=kubevirt-evacuation-)[a-z0-9]{5}\b"), lambda _: "xxxxx"),
    (re.compile(rf"(?<=-node-[0-9]-){_SUFFIX}{{5}}\b"), lambda _: "xxxxx"),
    (re.compile(r"(?<=\bpvc-)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), lambda _: "-".join("0" * n for n in _UUID)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One thing that holds an upgrade up, or ends it."""

    #: The phase value, or the state of a node, with which it begins.
    moment: str = "Initializing"
    damage: Damage
    #: The reasons of blockers, one of which appears; empty for a plan that fails.
    reasons: frozenset[str] = frozenset()
    scenario: Scenario
    spec: Mapping[str, Any]
    #: The user's work that no API object stands for, such as the repair of a disk.
    by_hand: Damage
    #: The manager's process does not run any more.
    is_dead: bool = False
    #: The manager's options.
    options: RunOptions = field(default_factory=lambda: RunOptions(leader_elect=True))

    def is_there(self, plan: Object) -> bool:
        """Return True once the plan shows it."""
        found = {str(one.reason) for one in read_blockers(objects.status(plan).get("blockers"))}
        return bool(found & self.reasons) or objects.status(plan).get("currentPhase") == FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The objects that `status` reads from the API server."""

    plan: Object
    events: list[Object]
    lease: Object
    at: datetime

    @property
    def view(self) -> View:
        """The view, as `status` builds it."""
        return build(self.plan, self.events, now=self.at, lease=LeaseReading(lease=self.lease, error="", at=self.at))

    def masked(self) -> Snapshot:
        """Return it without random names."""
        plan, events, lease = _masked([self.plan, self.events, self.lease])
        return Snapshot(plan=plan, events=events, lease=lease, at=self.at)


def _masked(read: Any) -> Any:
    text = json.dumps(read)
    for pattern, replacement in _RANDOM:
        text = pattern.sub(replacement, text)
    return json.loads(text)


async def taken(run: UpgradeRun) -> Snapshot:
    """Read the plan, its events and the Lease."""
    plan, selection = await run.plan(), events_of(await run.plan())
    events = await run.client.list(EVENTS, namespace=selection.namespace, field_selector=selection.field_selector)
    lease = await run.client.get(LEASES, LEASE, namespace=HARVESTER_SYSTEM)
    # It has the name of the machine on which the test runs.
    lease["spec"]["holderIdentity"] = "harvester-upgrade-manager-0_1"
    return Snapshot(plan=plan, events=events.items, lease=lease, at=run.simulation.now())


@asynccontextmanager
async def held_up(incident: Incident) -> AsyncIterator[UpgradeRun]:
    """Run an upgrade until the incident has held it up for a while, or it has failed."""
    async with Simulation(incident.scenario.model_copy()) as simulation:
        run = await UpgradeRun.set_up(simulation)
        run.options = incident.options
        async with run.life() as process:
            await run.create_plan({**incident.spec})
            await run.reach(incident.moment)
            await incident.damage(run)
            if incident.is_dead:
                await process.kill()
                await asyncio.sleep(DEAD_FOR)
            else:
                await run.until_plan(incident.is_there, seconds=_TIMEOUT)
                await asyncio.sleep(LASTS)
            yield run
