"""Checks that an upgrade with faults ran every step once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

from hack.apiserver.call import Call
from hack.faults.middleware import NoHook
from hack.virtual_time import VirtualEventLoop
from tests.support.managers.announcements import milestone_errors, without_milestones
from tests.support.managers.upgrade import UpgradeRun, condition, node_states, phases_of
from upgrade_manager.api.phases import PHASE_VALUES, PHASES, SUCCEEDED
from upgrade_manager.api.text import MESSAGE_LIMIT
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.transport import Response

#: Seconds until the last events are recorded, virtual and real; a lost one is retried after ten.
FAREWELL, REAL_FAREWELL = 300.0, 60.0
_INTERVAL = 0.2
_CREATED = 201
#: The events of an upgrade that succeeds.
SUCCESS_EVENTS = Counter(
    [f"{verb} {phase}" for phase in PHASES for verb in ("Entering phase", "Completed phase")]
    + ["Upgrade completed successfully"]
)


class CreateCounter(NoHook):
    """A hook that counts created objects."""

    def __init__(self) -> None:
        self.created: Counter[str] = Counter()

    async def after(self, number: int, call: Call, response: Response) -> None:
        _ = number
        if call.verb == "create" and response.status == _CREATED:
            self.created[f"{call.resource} {objects.name(json.loads(response.body))}"] += 1


async def assert_succeeds_once(stage: UpgradeRun, witness: CreateCounter) -> None:
    """Check that an upgrade succeeded and created each object and event once."""
    assert await stage.until_ended() == SUCCEEDED
    events = await _all_events(stage)
    plan = await stage.plan()
    assert phases_of(plan) == [*PHASE_VALUES, SUCCEEDED]
    assert objects.status(plan)["provisionGeneration"] == 4
    assert condition(plan, "Degraded") == ("False", "ReconcileSuccess", "")
    assert [name for name, count in witness.created.items() if count > 1] == []
    assert _announcements(events) == SUCCESS_EVENTS
    is_single = "singleNode" in objects.status(plan)
    assert milestone_errors(events, node_states(plan), single=is_single) == []
    for event in events:
        assert_readable(event["message"])


async def _all_events(stage: UpgradeRun) -> list[Object]:
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualEventLoop):
        await asyncio.sleep(FAREWELL)
        return await stage.events()
    deadline = loop.time() + REAL_FAREWELL
    events = await stage.events()
    while loop.time() < deadline and not _announcements(events) >= SUCCESS_EVENTS:
        await asyncio.sleep(_INTERVAL)
        events = await stage.events()
    return events


def _announcements(events: list[Object]) -> Counter[str]:
    """Count each announcement over all of its Event objects."""
    counts: Counter[str] = Counter()
    for event in without_milestones(events):
        if event["type"] == "Normal":
            counts[event["message"]] += event["count"]
    return counts


def assert_readable(message: str) -> None:
    """Check that a message is printable and short."""
    assert 0 < len(message) <= MESSAGE_LIMIT
    assert message.isprintable()
    assert "Traceback" not in message
    assert "Error(" not in message
