"""Events that commands record on the UpgradePlan; `kubectl describe up` shows them beside the manager's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.events import EventRecorder
from upgrade_manager.toolkit.run.own_plan import find_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from upgrade_manager.kube.client import Client

NORMAL = "Normal"
WARNING = "Warning"
#: Seconds for one event; the command continues without it.
_TIMEOUT = 30.0

_log = structlog.get_logger(__name__)


class PlanEvents:
    """Records events about one plan; best effort, never raises."""

    def __init__(
        self, client: Client, plan: str, *, plan_uid: str, now: Callable[[], datetime], random: Random
    ) -> None:
        self._client = client
        self._plan = plan
        self._plan_uid = plan_uid
        self._now = now
        self._random = random
        #: Reasons of events that this run has recorded, and does not repeat.
        self._recorded: set[str] = set()

    async def record_once(self, component: str, *, type_: str, reason: str, message: str) -> None:
        """Record an event unless this run has recorded one of that reason by this method."""
        if reason not in self._recorded:
            self._recorded.add(reason)
            _log.info("reported once", reason=reason, message=message)
            await self.record(component, type_=type_, reason=reason, message=message)

    async def record(self, component: str, *, type_: str, reason: str, message: str) -> None:
        """Record an event of this source component, and wait until it is sent."""
        recorder = EventRecorder(self._client, component=component, now=self._now, random=self._random)
        try:
            async with asyncio.timeout(_TIMEOUT):
                plan = await find_plan(self._client, self._plan, uid=self._plan_uid)
        except (KubeError, TimeoutError) as error:
            _log.warning("event not recorded", reason=reason, error=str(error))
            return
        if plan is None:
            _log.warning("event not recorded", reason=reason, error=f"UpgradePlan {self._plan} was deleted")
            return
        sender = asyncio.create_task(recorder.run())
        try:
            recorder.record(plan, type_=type_, reason=reason, message=message)
            if not await recorder.flush(_TIMEOUT):
                _log.warning("event not recorded", reason=reason, error=f"not sent within {_TIMEOUT:g} s")
        finally:
            sender.cancel()
            await asyncio.wait({sender})
