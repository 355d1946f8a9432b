"""The ways in which users hold the upgrades of a random run up: pauses, holds of nodes, canaries, other work.

random_plan.py draws them, random_run.py lets the users act.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from tests.support.random_runs.acts_of_holders import HOLDERS
from tests.support.random_runs.interference import Interference
from upgrade_manager.api.conditions import PAUSE_AFTER, PAUSED
from upgrade_manager.api.holds import HoldPoint, entry_of, held_nodes
from upgrade_manager.api.keys import ANNOTATION_CONTINUE
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Terminal, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: Points before which each node holds; many plans have none.
_POINTS = ((), (), (), (HoldPoint.DRAIN,), (HoldPoint.REBOOT,), tuple(HoldPoint))
_HUNDRED, _INTERVAL = 100, 60.0
#: The longest pause, in virtual seconds.
_LENGTHS = (0.05, 2.0, 30.0, 300.0)
_MOMENTS = (*PHASE_VALUES[:2], "ImagePreloaded", "ClusterUpgraded", "NodeUpgrading", "NodeUpgrading")


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The random decisions of users who hold upgrades up."""

    #: Virtual seconds until spec.paused is set, and until it is removed.
    pauses: tuple[tuple[float, float], ...]
    #: Of each plan.
    option: dict[str, Any]
    #: Virtual seconds between two rounds of the operator, who continues upgrades.
    interval: float
    holders: tuple[Interference, ...]

    def of(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Return the spec of a plan with the option."""
        option = {**spec.get("nodeUpgradeOption", {}), **self.option}
        return {**spec, "nodeUpgradeOption": option} if option else spec


def draw_control(seed: int, nodes: tuple[str, ...]) -> Control:
    """Make the decisions of a seed, apart, so that its others stay as they were; each second hundred has none."""
    if seed % (2 * _HUNDRED) >= _HUNDRED:
        return Control(pauses=(), option={}, interval=_INTERVAL, holders=())
    random = Random(f"control of random run {seed}")
    before, after = random.choice(_POINTS), random.choice([0, 0, 0, 1, 2])
    return Control(
        pauses=tuple(
            (random.uniform(0, 15), random.uniform(0, random.choice(_LENGTHS)))
            for _ in range(random.choice([0, 0, 1, 2, 3]))
        ),
        option={
            **({"pauseBefore": list(map(str, before))} if before else {}),
            **({"pauseAfter": after} if after else {}),
        },
        interval=random.uniform(1, _INTERVAL),
        holders=tuple(_holder(random, nodes) for _ in range(random.choice([0, 0, 0, 1, 2]))),
    )


def _holder(random: Random, nodes: tuple[str, ...]) -> Interference:
    return Interference(
        what=random.choice(list(HOLDERS)),
        phases=PHASE_VALUES.index(random.choice(_MOMENTS)) + 1,
        seconds=random.choice([0.0, random.uniform(0, 10)]),
        lasts=random.uniform(0, 60),
        node=random.choice(nodes),
        status=0,
    )


async def pause(client: Client, name: str, control: Control, *, retry: Callable[..., Awaitable[None]]) -> None:
    """Pause and continue the plan."""
    for until, lasts in control.pauses:
        for seconds, paused in ((until, True), (lasts, None)):
            await asyncio.sleep(seconds)
            with suppress(NotFound):
                await retry(partial(client.patch, UPGRADE_PLANS, name, MergePatch({"spec": {"paused": paused}})))


async def resume_held(client: Client, control: Control) -> None:
    """Continue the nodes that hold, and upgrades after their canaries."""
    while True:
        await asyncio.sleep(control.interval)
        # A request may be refused, or the plan is deleted meanwhile.
        with suppress(Transient, Terminal, NotFound):
            for plan in (await client.list(UPGRADE_PLANS)).items:
                await _resume(client, plan)


async def _resume(client: Client, plan: Object) -> None:
    if objects.text(objects.condition(plan, PAUSED), "reason") == PAUSE_AFTER:
        patch = MergePatch({"spec": {"nodeUpgradeOption": {"pauseAfter": None}}})
        await client.patch(UPGRADE_PLANS, objects.name(plan), patch)
    held = [entry_of(node, point) for node, point in held_nodes(objects.status(plan)).items()]
    if held:
        patch = MergePatch({"metadata": {"annotations": {ANNOTATION_CONTINUE: ",".join(held)}}})
        await client.patch(UPGRADE_PLANS, objects.name(plan), patch)
