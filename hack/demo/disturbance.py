"""Breaks an upgrade while it runs: mends it once the manager reports the blocker, or retries it once it has failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hack.demo.failures import FAILURES
from hack.demo.remedies import SHOWN, does, printed
from hack.demo.stalls import STALLS
from upgrade_manager.api.attempts import is_requested, retry_command
from upgrade_manager.api.blockers import read_blockers
from upgrade_manager.api.conditions import PROGRESSING
from upgrade_manager.api.phases import FAILED, TERMINAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from hack.demo.commands import Command
    from hack.demo.remedies import Kubectl
    from hack.demo.stalls import Stall
    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: Seconds without a blocker after the remedy, until it counts as cleared.
SETTLED = 5.0
#: The manager's seconds without progress, after which a blocker with an unexpected reason counts as the break's.
UNEXPECTED = 30.0
#: The manager's seconds without progress and a blocker, after which the remedy is due. Blockers take up to 600.
TIMEOUT = 900.0


@dataclass(slots=True, kw_only=True)
class _Disturbance:
    name: str
    stall: Stall
    remedy: Sequence[Command] = ()
    #: The manager's commands that were shown before they are due.
    shown: Sequence[str] = ()
    is_broken: bool = False
    #: The plan's progress when it was broken, later when a blocker was last there.
    progress: object = None
    #: The time at which the upgrade last progressed before a blocker appeared, in the loop's time.
    moved: float = 0.0
    #: The time at which its blocker appeared or the plan failed, or its remedy was due without one.
    appeared: float | None = None
    #: The first blocker.
    blocker: Blocker | None = None
    #: The time at which a blocker was last there.
    seen: float = 0.0
    is_mended: bool = False
    is_over: bool = False

    @property
    def fails(self) -> bool:
        """Return whether the plan fails."""
        return not self.stall.reasons


@dataclass(slots=True, kw_only=True)
class Disturbances:
    """All breaks of one upgrade; `advance` is called whenever the plan may have changed."""

    client: Client
    screen: Screen
    #: The user runs the remedies, and retries.
    hold: bool
    #: Seconds of the manager's clock in one of the demo's.
    rate: float
    kubectl: Kubectl
    items: list[_Disturbance] = field(default_factory=list)

    @classmethod
    def of(
        cls, names: Collection[str], *, client: Client, screen: Screen, hold: bool, rate: float, kubectl: Kubectl
    ) -> Disturbances:
        """Prepare the breaks of these names."""
        known = {**STALLS, **FAILURES}
        items = [_Disturbance(name=name, stall=known[name]) for name in names if name in known]
        return cls(client=client, screen=screen, hold=hold, rate=rate, kubectl=kubectl, items=items)

    async def advance(self, plan: Object) -> None:
        """Do what is due. Raises DemoError and KubeError."""
        recorded = {entry["phase"] for entry in objects.status(plan).get("phaseTransitionTimestamps") or ()}
        for one in self.items:
            if one.is_over:
                continue
            if objects.text(plan, "status", "currentPhase") in TERMINAL and not self.goes_on(plan):
                self._end(one)
            elif one.is_broken:
                await (self._retry if one.fails else self._follow)(one, plan)
            elif one.stall.phase in recorded:
                await self._break(one, plan)

    def goes_on(self, plan: Object) -> bool:
        """Return True for a plan that has ended, and is to be retried."""
        if objects.text(plan, "status", "currentPhase") != FAILED:
            return False
        return is_requested(plan) or any(one.fails and one.is_broken and not one.is_over for one in self.items)

    def _end(self, one: _Disturbance) -> None:
        one.is_over = True
        if one.appeared is None:
            awaited = "failure" if one.fails else "blocker"
            self.screen.show_message(f"\nThe upgrade ended without a {awaited} of this break ({one.name}).")

    async def _break(self, one: _Disturbance, plan: Object) -> None:
        damage, one.remedy = await one.stall.steps(self.client, plan)
        if not damage:
            return
        one.is_broken = True
        one.moved, one.progress = loop_time(), _progress(plan)
        self.screen.show_message(f"\nBreaking ({one.name}): {one.stall.what}\n{_lines(damage)}")
        for command in damage:
            await command.run(self.client)

    async def _retry(self, one: _Disturbance, plan: Object) -> None:
        """Request the next attempt of a failed plan. The plan shows it later than the response."""
        phase = objects.text(plan, "status", "currentPhase")
        if one.appeared is None:
            if phase == FAILED:
                one.appeared = loop_time()
                self.screen.show_message(f"\nFailed. Retrying ({self._due()}):\n  {retry_command(objects.name(plan))}")
        elif is_requested(plan) or phase != FAILED:
            one.is_over = True
        elif not self.hold and not one.is_mended and loop_time() - one.appeared >= SHOWN:
            one.is_mended = True
            said = await self.kubectl.run(retry_command(objects.name(plan)))
            self.screen.show_message(f"\n{said}")

    def _due(self) -> str:
        return "run this" if self.hold else f"in {SHOWN:.0f} s"

    async def _follow(self, one: _Disturbance, plan: Object) -> None:
        blockers = read_blockers(objects.status(plan).get("blockers"))
        if one.appeared is None:
            self._await_blocker(one, plan, blockers)
        elif any(_is_of(one, blocker) for blocker in blockers):
            one.seen, one.progress = loop_time(), _progress(plan)
        elif self._is_cleared(one, plan):
            one.is_over = True
            self.screen.show_message(f"\nThe blocker is cleared ({one.name}); the upgrade continues.")
        if one.appeared is not None and not one.is_mended and not self.hold and loop_time() - one.appeared >= SHOWN:
            one.is_mended = True
            await self._mend(one, blockers)
            one.seen = loop_time()

    async def _mend(self, one: _Disturbance, blockers: Sequence[Blocker]) -> None:
        """Run the commands as the manager prints them. Raises DemoError and KubeError."""
        texts = self._printed(one, blockers)
        if added := [text for text in texts if text not in one.shown]:
            self.screen.show_message(_lines(added))
        for text in texts:
            await self.kubectl.run(text)
        for command in one.remedy:
            if not any(does(text, command) for text in texts):
                await command.run(self.client)

    def _printed(self, one: _Disturbance, blockers: Iterable[Blocker]) -> list[str]:
        """Return the manager's commands; none without kubectl, or if the remedy is work outside of the API server."""
        if one.stall.stands_for or not self.kubectl.program:
            return []
        return printed((found for found in blockers if _is_of(one, found)), one.remedy)

    def _is_cleared(self, one: _Disturbance, plan: Object) -> bool:
        """Report whether it is repaired: of a user's repair, only the progress of the upgrade is known."""
        if self.hold:
            return _progress(plan) != one.progress
        return one.is_mended and loop_time() - one.seen >= SETTLED

    def _await_blocker(self, one: _Disturbance, plan: Object, blockers: Sequence[Blocker]) -> None:
        if one.progress != (progress := _progress(plan)):
            one.moved, one.progress = loop_time(), progress
        expected = (blocker for blocker in blockers if blocker.reason in one.stall.reasons)
        one.blocker = next(expected, None) or self._unexpected(one, blockers)
        if one.blocker is None and self._waited(one) < TIMEOUT:
            return
        one.appeared = one.seen = loop_time()
        report = _report(one.blocker) if one.blocker else _silence(one, plan)
        texts = self._printed(one, blockers)
        how = f", in place of {one.stall.stands_for}" if one.stall.stands_for else ", with kubectl" if texts else ""
        one.shown = [*texts]
        self.screen.show_message(f"\n{report}\nMending ({self._due()}{how}):\n{_lines(texts or one.remedy)}")

    def _waited(self, one: _Disturbance) -> float:
        """Return the seconds since the break or the last progress, by the manager's clock."""
        return (loop_time() - one.moved) * self.rate

    def _unexpected(self, one: _Disturbance, blockers: Sequence[Blocker]) -> Blocker | None:
        """Return a lasting blocker that no other break explains."""
        if self._waited(one) < UNEXPECTED:
            return None
        others = [other for other in self.items if other is not one and other.is_broken and not other.is_over]
        return next((found for found in blockers if not any(_is_of(other, found) for other in others)), None)


def _is_of(one: _Disturbance, blocker: Blocker) -> bool:
    return blocker.reason in one.stall.reasons or (one.blocker is not None and blocker.reason == one.blocker.reason)


def _progress(plan: Object) -> object:
    """Return what changes whenever the upgrade takes a step."""
    status = objects.status(plan)
    nodes = status.get("nodeUpgradeStatuses") or {}
    return status.get("currentPhase"), {name: entry.get("state") for name, entry in nodes.items()}


def _silence(one: _Disturbance, plan: Object) -> str:
    """Say what is known where the plan names nothing that fits."""
    status = objects.status(plan)
    waiting = objects.condition(plan, PROGRESSING).get("message") or "no message"
    return f"No blocker of this break ({one.name}) within {TIMEOUT:.0f} s. {status.get('currentPhase')}: {waiting}"


def _report(blocker: Blocker) -> str:
    return f"Blocked ({blocker.reason}): {blocker.message}\nSince {blocker.since:%H:%M:%S}. Remedy: {blocker.remedy}"


def _lines(commands: Iterable[Command | str]) -> str:
    return "\n".join(f"  {command}" for command in commands)
