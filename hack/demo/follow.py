"""Watching one plan to its end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hack.demo.stage import DemoError
from hack.demo.view import View, build
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.demo.screen import Screen
    from hack.demo.stage import Stage
    from upgrade_manager.kube.informer import Informer
    from upgrade_manager.kube.objects import Object

#: Seconds between two looks at what the watches have brought and at whether everything still runs.
TICK = 0.1


async def follow(
    stage: Stage, screen: Screen, *, plan: Object, plans: Informer, events: Informer, within: float
) -> View:
    """Show the plan until it has ended, and return the last view; raises DemoError, also when it takes too long."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while loop.time() < deadline:
        view = look(plan, plans=plans, events=events, now=datetime.now(UTC))
        screen.show(view)
        if view.outcome:
            return await _last_look(screen, plan=plan, plans=plans, events=events)
        remark = await stage.check()
        if remark:
            screen.say(remark)
        await asyncio.sleep(TICK)
    view = look(plan, plans=plans, events=events, now=datetime.now(UTC))
    last = view.trouble or view.waiting
    raise DemoError(
        f"the upgrade has not ended within {within:.0f} s{f'; at last: {last}' if last else ''}", child=stage.manager
    )


def look(plan: Object, *, plans: Informer, events: Informer, now: datetime) -> View:
    """Build a view from what the watches hold; raises DemoError when the plan has been deleted."""
    seen = plans.store.get(objects.name(plan))
    if seen is None:
        raise DemoError(f"UpgradePlan {objects.name(plan)} was deleted")
    about = [event for event in events.store.list() if event.get("involvedObject", {}).get("uid") == objects.uid(plan)]
    return build(seen, about, now=now)


async def _last_look(screen: Screen, *, plan: Object, plans: Informer, events: Informer) -> View:
    """The plan's last event is on its way when the plan has ended."""
    await asyncio.sleep(5 * TICK)
    view = look(plan, plans=plans, events=events, now=datetime.now(UTC))
    screen.show(view)
    return view
