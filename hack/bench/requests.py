"""What an upgrade asks of the API server, and what each further node costs."""

from __future__ import annotations

from hack import virtual_time
from hack.bench.desk import MANAGER
from hack.bench.figure import Figure
from hack.bench.in_process import upgraded
from hack.bench.recorder import CONFLICT, Exchange
from hack.cluster import scenario as scenarios

#: Clusters whose difference tells what a node costs: small ones and large ones.
SMALL, LARGE = (3, 6), (50, 100)


def measure() -> list[Figure]:
    """Run clusters of several sizes, otherwise alike."""
    runs = {count: virtual_time.run(_requests(count)) for count in (*SMALL, *LARGE)}
    three = runs[SMALL[0]]
    small, large = (_each(runs, *sizes) for sizes in (SMALL, LARGE))
    return [
        Figure(name="requests of a three-node upgrade", value=len(three), unit="", aim=100),
        Figure(name="writes of status in it", value=sum(e.writes_status for e in three), unit="", aim=50),
        Figure(name="answers 409 in it", value=sum(e.status == CONFLICT for e in three), unit="", aim=0),
        Figure(name="requests for each node, three-node upgrade", value=small, unit="", aim=40),
        Figure(name="requests for each node, 100-node upgrade", value=large, unit="", aim=40),
        Figure(name="the one over the other", value=max(small, large) / min(small, large), unit="", aim=1.1),
    ]


def _each(runs: dict[int, list[Exchange]], fewer: int, more: int) -> float:
    return (len(runs[more]) - len(runs[fewer])) / (more - fewer)


async def _requests(count: int) -> list[Exchange]:
    scenario = scenarios.load("three-nodes").changed(nodes={"count": count, "management": 3})
    async with upgraded(scenario) as upgrade:
        return upgrade.recorder.of(MANAGER)
