"""What a phase waits for is acted upon as soon as it is seen: nothing is slept over, no phase begins a while later."""

from __future__ import annotations

from hack import scenario as scenarios
from hack import virtualtime
from hack.bench.desk import MANAGER
from hack.bench.inprocess import upgraded
from hack.bench.reactions import reactions

#: Seconds, in virtual time, where only waiting and the way to the API server count.
AT_ONCE = 0.05
#: One for each phase that waits for one object, and five for each of the three nodes.
ENOUGH = 15


async def _reactions() -> list[float]:
    scenario = scenarios.load("three-nodes")
    async with upgraded(scenario) as upgrade:
        exchanges = list(upgrade.recorder.exchanges)
    return reactions(exchanges, manager=MANAGER, os_image=scenario.release.os_image)


def test_what_is_awaited_is_acted_upon_at_once() -> None:
    found = virtualtime.run(_reactions())
    assert len(found) > ENOUGH
    assert max(found) <= AT_ONCE
