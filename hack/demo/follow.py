"""Follow one plan to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hack.demo.programs import DemoError
from upgrade_manager.display.view import build
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hack.demo.disturbance import Disturbances
    from hack.demo.programs import Programs
    from upgrade_manager.display.model import View
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.informer import Informer
    from upgrade_manager.kube.objects import Object

#: Seconds between two updates.
INTERVAL = 0.1


async def follow(
    programs: Programs,
    screen: Screen,
    disturbances: Disturbances,
    *,
    plan: Object,
    now: Callable[[], datetime],
    plans: Informer,
    events: Informer,
    within: float,
) -> View | None:
    """Show the plan until it has ended, and return the last view, or None when a user has deleted the plan.

    Raises DemoError, also after `within` seconds.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        current = _current(plan, plans)
        if current is None:
            return None
        view = _view(current, events=events, now=now())
        screen.show(view)
        await disturbances.advance(current)
        if view.state.is_end and not disturbances.goes_on(current):
            # The plan's last event follows its last status.
            await asyncio.sleep(5 * INTERVAL)
            view = _view(_current(plan, plans) or current, events=events, now=now())
            screen.show(view)
            return view
        if loop.time() > deadline:
            state = view.last_error or view.waiting
            message = f"the upgrade has not ended within {within:.0f} s{f': {state}' if state else ''}"
            raise DemoError(message, child=programs.manager)
        if restarted := await programs.check():
            screen.show_message(restarted)
        await asyncio.sleep(INTERVAL)


def _current(plan: Object, plans: Informer) -> Object | None:
    """Return the plan as the informer has it; not another one of the same name."""
    current = plans.store.get(objects.name(plan))
    return current if current is not None and objects.uid(current) == objects.uid(plan) else None


def _view(plan: Object, *, events: Informer, now: datetime) -> View:
    uid = objects.uid(plan)
    related = [event for event in events.store.list() if event.get("involvedObject", {}).get("uid") == uid]
    return build(plan, related, now=now)
