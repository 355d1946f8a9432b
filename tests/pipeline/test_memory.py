"""A manager that runs for months: it forgets plans with their deletion."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import partial
from types import MethodType
from typing import Any

from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.kube import objects

_CONTAINERS = (dict, list, set, tuple, partial, MethodType)
_OWN = ("upgrade_manager.", "webhook.")


def reachable(root: object) -> Iterator[object]:
    """Yield the manager's own objects, and the containers that they refer to."""
    seen: dict[int, object] = {}
    stack = [root]
    while stack:
        one = stack.pop()
        if id(one) in seen or not (isinstance(one, _CONTAINERS) or type(one).__module__.startswith(_OWN)):
            continue
        seen[id(one)] = one
        yield one
        stack += gc.get_referents(one)


def keyed_by(root: object, uid: str) -> list[Any]:
    return [one for one in reachable(root) if isinstance(one, dict | set) and uid in one]


async def test_deleted_plan_is_forgotten() -> None:
    async with Simulation() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.refuse("create", "plans.upgrade.cattle.io")
        async with stage.life() as life:
            await stage.create_plan()
            plan = await stage.until_plan(lambda plan: bool(objects.status(plan).get("blockers")))
            uid = objects.uid(plan)
            assert keyed_by(life.manager, uid)
            await stage.delete()
            life.metrics.refresh()
            assert keyed_by(life.manager, uid) == []
