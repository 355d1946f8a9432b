"""Breaks an upgrade while it runs, and mends it once the manager reports the blocker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hack.demo.stalls import STALLS
from upgrade_manager.api.blockers import read_blockers
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hack.demo.commands import Command
    from hack.demo.stalls import Stall
    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: Seconds for which a blocker is shown before the remedy.
SHOWN = 10.0


@dataclass(slots=True, kw_only=True)
class _Disturbance:
    name: str
    stall: Stall
    remedy: Sequence[Command] = ()
    is_broken: bool = False
    #: When its blocker appeared, in the loop's time.
    appeared: float | None = None
    is_mended: bool = False
    is_over: bool = False


@dataclass(slots=True, kw_only=True)
class Disturbances:
    """All breaks of one upgrade; `advance` is called whenever the plan may have changed."""

    client: Client
    screen: Screen
    #: The user runs the remedies.
    hold: bool
    items: list[_Disturbance] = field(default_factory=list)

    @classmethod
    def of(cls, names: Iterable[str], *, client: Client, screen: Screen, hold: bool) -> Disturbances:
        """Prepare the breaks of these names."""
        items = [_Disturbance(name=name, stall=STALLS[name]) for name in names]
        return cls(client=client, screen=screen, hold=hold, items=items)

    async def advance(self, plan: Object) -> None:
        """Do what is due. Raises KubeError."""
        recorded = {entry["phase"] for entry in objects.status(plan).get("phaseTransitionTimestamps") or ()}
        blockers = read_blockers(objects.status(plan).get("blockers"))
        for one in self.items:
            if not one.is_broken and one.stall.phase in recorded:
                await self._break(one, plan)
            elif one.is_broken and not one.is_over:
                found = next((blocker for blocker in blockers if blocker.reason in one.stall.reasons), None)
                await self._follow(one, found)

    async def _break(self, one: _Disturbance, plan: Object) -> None:
        damage, one.remedy = await one.stall.steps(self.client, plan)
        if not damage:
            return
        one.is_broken = True
        self.screen.say(f"\nBreaking ({one.name}): {one.stall.what}\n{_lines(damage)}")
        for command in damage:
            await command.run(self.client)

    async def _follow(self, one: _Disturbance, blocker: Blocker | None) -> None:
        now = asyncio.get_running_loop().time()
        if blocker is not None and one.appeared is None:
            one.appeared = now
            due = "run this" if self.hold else f"in {SHOWN:.0f} s"
            self.screen.say(f"\n{_report(blocker)}\nMending ({due}):\n{_lines(one.remedy)}")
        if blocker is None and one.appeared is not None:
            one.is_over = True
            self.screen.say(f"\nThe blocker is cleared ({one.name}); the upgrade continues.")
        elif one.appeared is not None and not one.is_mended and not self.hold and now - one.appeared >= SHOWN:
            one.is_mended = True
            for command in one.remedy:
                await command.run(self.client)


def _report(blocker: Blocker) -> str:
    return f"Blocked ({blocker.reason}): {blocker.message}\nSince {blocker.since:%H:%M:%S}. Remedy: {blocker.remedy}"


def _lines(commands: Iterable[Command]) -> str:
    return "\n".join(f"  {command}" for command in commands)
