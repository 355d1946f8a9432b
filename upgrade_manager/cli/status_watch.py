"""Follows one plan and its events, and shows each change.

status.py runs it for `--watch`, and wait.py.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import format_duration
from upgrade_manager.cli.exit_status import ExitStatus
from upgrade_manager.cli.plans import events_of
from upgrade_manager.cli.session import CommandError
from upgrade_manager.display.view import build
from upgrade_manager.kube import objects
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import datetime
    from random import Random

    from upgrade_manager.cli.lease_watch import LeaseWatch
    from upgrade_manager.display.expectation import Pace
    from upgrade_manager.display.model import View
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: Seconds between two views without a change.
TICK = 1.0
#: Seconds without a connection after which that is shown; a watch that is reopened takes less.
LOST_AFTER = 2.0


@asynccontextmanager
async def time_limit(watch: PlanWatch, *, name: str, seconds: float | None) -> AsyncIterator[None]:
    """End what follows the plan after so long, with the exit status for scripts. Raises CommandError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        text = f"{name} has not ended after {format_duration(seconds or 0)}: {watch.view().status}"
        raise CommandError(text, status=ExitStatus.TIMED_OUT) from error


class PlanWatch:
    """Watches a plan and its events, which were read before."""

    def __init__(
        self,
        client: Client,
        plan: Object,
        events: Sequence[Object],
        *,
        pace: Pace,
        lease: LeaseWatch,
        now: Callable[[], datetime],
        random: Random,
    ) -> None:
        name = objects.name(plan)
        plans = Selection(resource=UPGRADE_PLANS, field_selector=f"metadata.name={name}")
        self._plans = Informer(client, plans, handlers=[self._on_change], random=random)
        self._events = Informer(client, events_of(plan), handlers=[self._on_change], random=random)
        self._plan = plan
        self._known_events = events
        self._pace = pace
        self._lease = lease
        self._now = now
        self._changed = asyncio.Event()
        #: The time at which the connection was lost; None while it works.
        self._lost: datetime | None = None

    def view(self) -> View:
        """Return the view of the present state."""
        return build(self._plan, self._known_events, now=self._now(), pace=self._pace, lease=self._lease.reading)

    async def follow(self, screen: Screen, *, until: Callable[[View], bool] = lambda _: False) -> bool:
        """Show the plan until it has ended and its objects are removed, or `until` is true of its view.

        Return False if the plan was deleted.
        """
        async with asyncio.TaskGroup() as group:
            works = (self._plans.run(), self._events.run(), self._lease.follow(self._changed.set))
            tasks = [group.create_task(work) for work in works]
            try:
                return await self._show_changes(screen, until)
            finally:
                for task in tasks:
                    task.cancel()

    async def _show_changes(self, screen: Screen, until: Callable[[View], bool]) -> bool:
        is_changed, notice = True, ""
        while self._refresh():
            view, before, notice = self.view(), notice, self._notice()
            if notice != before:
                screen.notify(notice)
            if is_changed or screen.redraws:
                screen.show(view)
            # The plan's last event follows its last status.
            if until(view) or (view.state.is_end and not view.cleaning_up and not is_changed):
                return True
            is_changed = await self._wait()
        return False

    def _refresh(self) -> bool:
        """Read the informers' stores; return False if the plan was deleted."""
        if self._events.has_synced:
            self._known_events = self._events.store.list()
        if not self._plans.has_synced:
            return True
        current = self._plans.store.get(objects.name(self._plan))
        if current is None or objects.text(current, "metadata", "uid") != objects.text(self._plan, "metadata", "uid"):
            return False
        self._plan = current
        return True

    def _notice(self) -> str:
        if self._plans.failing_for < LOST_AFTER:
            self._lost = None
            return ""
        self._lost = self._lost or self._now()
        error = f": {self._plans.last_error}" if self._plans.last_error else ""
        return f"Connection to the API server lost at {self._lost:%H:%M:%S} UTC; retrying{error}"

    async def _wait(self) -> bool:
        """Wait for a change, or for the next tick; return True after a change."""
        try:
            async with asyncio.timeout(TICK):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def _on_change(self, _: object) -> None:
        self._changed.set()
