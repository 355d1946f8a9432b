"""An upgrade of which chance decides everything, and the same seed the same.

`python -m tests.support.randomrun 17` repeats the run of seed 17, with its log.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from hack import scenario as scenarios
from hack import virtualtime
from hack.simulation import Simulation
from tests.support.apifaults import FAULTS
from tests.support.overseer import OverseenGround
from tests.support.upgrade import BY_IMAGE, BY_VERSION, PLAN, Stage, condition, phases_of
from upgrade_manager.api.keys import LABEL_PLAN, PREFIX
from upgrade_manager.api.phases import PHASE_VALUES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Transient
from upgrade_manager.kube.kinds import SECRETS, SERVICES, UPGRADE_PLANS
from upgrade_manager.kube.patch import MergePatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resource import Resource

SCENARIOS = ("one-node", "two-nodes", "three-nodes", "witness")
#: Writes of an upgrade at which a manager may die; more than any has.
_MOST_WRITES = 110
#: Virtual seconds after the end in which all that it sets off is over, even with an API server full of faults.
_FAREWELL = 120.0
#: Virtual seconds between two tries to pause or to let go, while there is no API server.
_AGAIN = 1.0
_LOST = "answers lost after the write"
_OTHER = "somebody-else"
_SUC_LABEL = "plan.upgrade.cattle.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What chance has decided."""

    seed: int
    scenario: Scenario
    spec: dict[str, Any]
    #: Names of faults of the API server.
    faults: tuple[str, ...]
    #: For each life of a manager but the last: the write at which it dies, and whether after it.
    deaths: tuple[tuple[int, bool], ...]
    #: The write of the last life whose answer gets lost; 0 for none.
    lost: int
    #: Seconds after which the list of nodes to hold back becomes this; in the end it is empty.
    pauses: tuple[tuple[float, tuple[str, ...]], ...]

    def __str__(self) -> str:
        """In one line, for people."""
        return (
            f"seed {self.seed}: {self.scenario.name}, {self.spec}, faults {self.faults}, deaths {self.deaths}, "
            f"lost {self.lost}, pauses {self.pauses}"
        )


def draw(seed: int) -> Draw:
    """Decide."""
    dice = Random(f"random run {seed}")
    scenario = _scenario(dice)
    names = scenario.nodes.names
    spec = {**dice.choice([BY_VERSION, BY_IMAGE]), "force": dice.random() < 0.2, "restoreVM": dice.random() < 0.5}
    if dice.random() < 0.5:
        spec["imagePreloadOption"] = {"concurrency": dice.choice([-1, 0, 1, 2, 9])}
    if dice.random() < 0.3:
        spec["nodeUpgradeOption"] = {"pauseNodes": _some(dice, (*names, "nobody"))}
    return Draw(
        seed=seed,
        scenario=scenario,
        spec=spec,
        faults=_bearable(dice.sample(sorted(FAULTS), dice.choice([0, 0, 1, 1, 2]))),
        deaths=tuple((dice.randint(1, _MOST_WRITES), dice.random() < 0.5) for _ in range(dice.choice([0, 1, 1, 2, 3]))),
        lost=dice.choice([0, dice.randint(1, _MOST_WRITES)]),
        pauses=tuple((dice.uniform(0, 20), tuple(_some(dice, names))) for _ in range(dice.choice([0, 0, 1, 2]))),
    )


def _bearable(faults: list[str]) -> tuple[str, ...]:
    """A clean-up that loses every third answer and more hardly ever gets through as a whole, as it has to."""
    return (_LOST,) if _LOST in faults else tuple(faults)


def _scenario(dice: Random) -> Scenario:
    scenario = scenarios.load(dice.choice(SCENARIOS))
    durations = {name: value * 10 ** dice.uniform(-1, 0.7) for name, value in scenario.durations.model_dump().items()}
    hosts = scenario.nodes.for_machines
    machines = [
        {
            "name": f"machine-{number}",
            "node": dice.choice(hosts),
            "migratable": dice.random() < 0.7,
            "run_strategy": dice.choice(["Always", "RerunOnFailure"]),
            "volume": dice.random() < 0.7,
            "failing_migrations": dice.choice([0, 0, 0, 1]),
        }
        for number in range(dice.randint(0, 6))
    ]
    return scenario.changed(
        durations=durations,
        vms={"count": 0, "machines": machines},
        jitter=dice.uniform(0, 0.5),
        replenishment_interval=dice.choice([None, "0", "600", "86400"]),
        addons=dice.choice([[], [_descheduler(enabled=True)], [_descheduler(enabled=False)]]),
    )


def _descheduler(*, enabled: bool) -> dict[str, Any]:
    return {"name": "descheduler", "namespace": "kube-system", "enabled": enabled}


def _some(dice: Random, names: tuple[str, ...]) -> list[str]:
    return dice.sample(names, dice.randint(1, len(names)))


@dataclass(kw_only=True)
class Run:
    """How it went."""

    draw: Draw
    #: All that was wrong, one sentence each.
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """With the line that repeats it."""
        found = "\n".join(f"- {fault}" for fault in self.faults)
        return f"{self.draw}\n{found}\nrepeat it: .venv/bin/python -m tests.support.randomrun {self.draw.seed}"


async def run(drawn: Draw) -> Run:
    """Let it happen."""
    result = Run(draw=drawn)
    grounds: list[OverseenGround] = []

    def ground(seed: int) -> OverseenGround:
        grounds.append(OverseenGround(seed, plan=PLAN))
        return grounds[0]

    async with Simulation(drawn.scenario, seed=drawn.seed, ground=ground) as simulation:
        stage = await Stage.set_up(simulation)
        await _plant(simulation)
        before = await _others(simulation)
        for name in drawn.faults:
            simulation.middleware.add(FAULTS[name])
        try:
            await _live(stage, drawn)
        except TimeoutError:
            plan = await stage.plan()
            result.faults.append(f"stuck: {json.dumps(objects.status(plan))}")
        result.faults += grounds[0].overseer.violations
        result.faults += await _judge(stage, before, await _others(simulation))
    return result


async def _live(stage: Stage, drawn: Draw) -> None:
    """Lives of managers, until the last one sees the end."""
    async with AsyncExitStack() as stack:
        created = False
        for number, (write, after) in enumerate(drawn.deaths):
            async with stage.life(die_at=write, after=after, seed=f"life {number}") as life:
                if not created:
                    created = True
                    await stage.create_plan(drawn.spec)
                    await stack.enter_async_context(_pausing(stage, drawn))
                await stage.until_ended(died=life.wire.died)
        async with stage.life(lose_at=drawn.lost, seed="last life"):
            if not created:
                await stage.create_plan(drawn.spec)
                await stack.enter_async_context(_pausing(stage, drawn))
            await stage.until_ended()
            await asyncio.sleep(_FAREWELL)


@asynccontextmanager
async def _pausing(stage: Stage, drawn: Draw) -> AsyncIterator[None]:
    """Nodes are held back and let go meanwhile."""
    task = asyncio.create_task(_pause(stage, drawn), name="pausing")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _pause(stage: Stage, drawn: Draw) -> None:
    client = stage.simulation.client()
    for seconds, nodes in (*drawn.pauses, (20.0, ())):
        await asyncio.sleep(seconds)
        patch = MergePatch({"spec": {"nodeUpgradeOption": {"pauseNodes": list(nodes)}}})
        while True:
            try:
                await client.patch(UPGRADE_PLANS, stage.name, patch)
            except Transient:
                await asyncio.sleep(_AGAIN)
            else:
                break


#: Objects that look like ours and belong to somebody else, who is to find them as they were.
_DECOYS: tuple[tuple[Resource, Object], ...] = (
    (SECRETS, {"metadata": {"namespace": "cattle-system"}, "stringData": {"a": "b"}}),
    (SERVICES, {"metadata": {"namespace": "harvester-system"}, "spec": {"ports": [{"port": 80}]}}),
)


async def _plant(simulation: Simulation) -> None:
    labels = {LABEL_PLAN: _OTHER}
    for resource, decoy in _DECOYS:
        meta = {**decoy["metadata"], "name": _OTHER, "labels": labels}
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **decoy, "metadata": meta}
        await simulation.client().create(resource, manifest)


async def _others(simulation: Simulation) -> dict[str, Any]:
    """What an upgrade must leave, or put back, as it was."""
    kept: dict[str, Any] = {}
    for obj in [json.loads(line) for line in (await simulation.dump()).splitlines()]:
        title = objects.title(obj)
        if objects.labels(obj).get(LABEL_PLAN) == _OTHER:
            kept[title] = obj
        elif title == "Setting longhorn-system/replica-replenishment-wait-interval":
            kept[title] = obj["value"]
        elif title == "Addon kube-system/descheduler":
            kept[title] = objects.spec(obj).get("enabled")
        elif title == "Cluster fleet-local/local":
            kept[title] = (objects.spec(obj).get("rkeConfig") or {}).get("upgradeStrategy")
    return kept


async def _judge(stage: Stage, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Whether the end is the one that every upgrade should have, and nothing is left of the way there."""
    faults = [
        f"{title} was {before[title]}, and is {after.get(title)}"
        for title in before
        if before[title] != after.get(title)
    ]
    try:
        plan = await stage.plan()
    except NotFound:
        return [*faults, "the plan is gone"]
    if phases_of(plan) != [*PHASE_VALUES, SUCCEEDED]:
        faults.append(f"the plan's phases are {phases_of(plan)}: {condition(plan, 'Progressing')}")
    if condition(plan, "Degraded") != ("False", "ReconcileSuccess", ""):
        faults.append(f"Degraded is {condition(plan, 'Degraded')}")
    for obj in [json.loads(line) for line in (await stage.simulation.dump()).splitlines()]:
        faults += _traces(obj)
    return faults


def _traces(obj: Object) -> list[str]:
    """What should not be in a cluster after an upgrade."""
    title, labels = objects.title(obj), objects.labels(obj)
    faults = [f"{title} is left over"] if labels.get(LABEL_PLAN) == PLAN else []
    if obj["kind"] == "Node":
        marks = [key for key in labels if key.startswith(_SUC_LABEL)]
        marks += [key for key in objects.annotations_of(obj) if key.startswith(f"{PREFIX}/")]
        faults += [f"{title} has {mark}" for mark in marks]
    return faults


if __name__ == "__main__":
    for _seed in sys.argv[1:]:
        print(virtualtime.run(run(draw(int(_seed)))))  # noqa: T201  # a program
