"""Kills a toolkit command before or after one of its effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.toolkit.toolkit_effects import observed

if TYPE_CHECKING:
    from tests.support.toolkit.toolkit import ToolkitWorld


class Killed(BaseException):
    """The command's process is killed: nothing of it happens any more."""


class Interrupts:
    """Implements Observer: kills at one point; there are two points for each effect, and one for each part."""

    def __init__(self, *, at: int) -> None:
        self._at = at
        #: Points that were passed.
        self.passed = 0
        #: The effect at which the command was killed.
        self.where = ""

    def before(self, effect: str) -> None:
        self._pass(f"before {effect}")

    def within(self, effect: str) -> None:
        self._pass(f"within {effect}")

    def after(self, effect: str) -> None:
        self._pass(f"after {effect}")

    def _pass(self, where: str) -> None:
        if self.passed == self._at:
            # Also what is done while the exception propagates: a process that was killed does not clean up.
            self.where = self.where or where
            raise Killed(self.where)
        self.passed += 1


class KillBefore:
    """Implements Observer: kills before the first effect, or part of one, that begins so."""

    def __init__(self, effect: str) -> None:
        self._effect = effect
        self._is_killed = False

    def before(self, effect: str) -> None:
        self._is_killed = self._is_killed or effect.startswith(self._effect)
        if self._is_killed:
            raise Killed(effect)

    def within(self, effect: str) -> None:
        self.before(effect)

    def after(self, effect: str) -> None:
        """See Observer."""


async def run_killed(world: ToolkitWorld, command: str, *, at: int) -> str:
    """Run a command that is killed at a point, and return where; empty if it ended before. Raises StepFailed."""
    interrupts = Interrupts(at=at)
    try:
        await world.run(command, **observed(world, interrupts))
    except Killed:
        return interrupts.where
    return ""


async def run_killed_before(world: ToolkitWorld, command: str, effect: str) -> None:
    """Run a command that is killed before its first effect that begins so."""
    probe = KillBefore(effect)
    with pytest.raises(Killed):
        await world.run(command, **observed(world, probe))


async def count_points(world: ToolkitWorld, command: str) -> int:
    """Run a command to its end, and return the number of points at which it could be killed."""
    interrupts = Interrupts(at=-1)
    await world.run(command, **observed(world, interrupts))
    return interrupts.passed
