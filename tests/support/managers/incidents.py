"""Incidents: an upgrade of a simulated cluster that something holds up, and what the API server then has of it.

tests/display draws the screens of these, and tests/cli runs the commands that stand on them. The damages are those of
the demo (hack/demo/stalls.py).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hack import scenario as scenarios
from hack.demo.stalls import STALLS
from hack.simulation import Simulation
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun
from upgrade_manager.api.blockers import read_blockers
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.cli.plans import events_of
from upgrade_manager.display.leader import LeaseReading
from upgrade_manager.display.model import View
from upgrade_manager.display.view import build
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import EVENTS, LEASES

if TYPE_CHECKING:
    from hack.demo.stalls import Steps

#: Seconds for which a blocker is there before the screen is drawn.
LASTS = 90.0
#: Seconds between two attempts to damage an object, and until a blocker must be there.
_LOOK, _TIMEOUT = 0.1, 3600.0
#: Texts that random numbers make, and ones of the same length in their place.
_UUID = (8, 4, 4, 4, 12)
_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]"
_RANDOM = (
    (re.compile(rf"(?<=-with-)([0-9a-f]+)-{_SUFFIX}{{5}}\b"), lambda found: "0" * len(found[1]) + "-xxxxx"),
    (re.compile(rf"(?<=-node-[0-9]-){_SUFFIX}{{5}}\b"), lambda _: "xxxxx"),
    (re.compile(r"(?<=\bpvc-)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), lambda _: "-".join("0" * n for n in _UUID)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One thing that holds an upgrade up."""

    #: The phase value, or the state of a node, with which it begins.
    moment: str
    steps: Steps
    #: The reasons of blockers, one of which appears.
    reasons: frozenset[str]
    #: Changes of the scenario.
    scenario: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=lambda: BY_VERSION)


#: The incidents by name.
INCIDENTS = {
    name: Incident(moment=one.phase, steps=one.steps, reasons=frozenset(map(str, one.reasons)))
    for name, one in STALLS.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The objects that `status` reads from the API server, with the time."""

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
    """Run an upgrade until the incident has held it up for a while."""
    scenario = scenarios.load("three-nodes").changed(**{"operators": True, **incident.scenario})
    async with Simulation(scenario) as simulation:
        run = await UpgradeRun.set_up(simulation)
        run.options = RunOptions(leader_elect=True)
        async with run.life():
            await run.create_plan(incident.spec)
            await run.reach(incident.moment)
            await _damage(run, incident)
            await run.until_plan(lambda plan: bool(incident.reasons & reasons_of(plan)), seconds=_TIMEOUT)
            await asyncio.sleep(LASTS)
            yield run


async def _damage(run: UpgradeRun, incident: Incident) -> None:
    damage, _ = await incident.steps(run.client, await run.plan())
    while not damage:
        await asyncio.sleep(_LOOK)
        damage, _ = await incident.steps(run.client, await run.plan())
    for command in damage:
        await command.run(run.client)


def reasons_of(plan: Object) -> set[str]:
    """Return the reasons of the plan's blockers."""
    return {str(one.reason) for one in read_blockers(objects.status(plan).get("blockers"))}
