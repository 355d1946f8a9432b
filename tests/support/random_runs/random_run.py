"""An upgrade with random decisions, by seed.

`python -m tests.support.random_runs.random_run 17` repeats the run of seed 17, with its log.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from hack import virtual_time
from hack.simulation import Simulation
from tests.support.cluster.node_order import NodeOrder
from tests.support.managers.manager_restarts import in_background, restarted
from tests.support.managers.stall_matrix import PlanObserver
from tests.support.managers.success_truth import SuccessTruth
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, STUCK, UpgradeRun, condition, phases_of
from tests.support.random_runs import end_state_checks
from tests.support.random_runs.interference import (
    BY_HAND,
    CHANGES_GENERATION,
    CHANGES_STRATEGY,
    MOVES_NODES,
    OFF_EARLY,
    RESTARTS,
    SET_BACK,
    SET_BY_USERS,
    Interference,
)
from tests.support.random_runs.machines_on import MachinesOn
from tests.support.random_runs.operator import FOLLOWED, follow_remedies
from tests.support.random_runs.random_control import pause, resume_held
from tests.support.random_runs.random_plan import Instant, RandomPlan, draw
from tests.support.server.api_faults import FAULTS
from tests.support.server.request_audit import AuditedBackend
from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.in_progress import blocks_next_plan
from upgrade_manager.api.phases import FAILED, TERMINAL
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any

    from upgrade_manager.kube.objects import Object

#: Virtual seconds until the cleanup is done, with API faults.
_SETTLE_SECONDS = 120.0
#: Virtual seconds until all events are sent, of which each refused one waits 10 s.
_EVENT_SECONDS = 600.0
#: Virtual seconds for which a cache without faults may be out of date, at most.
_PROMPT = 3.0
#: Virtual seconds between two polls of a plan.
_INTERVAL = 0.1
#: Virtual seconds after which a user reads the blockers again.
_READ_INTERVAL = 600.0
#: Virtual seconds between two attempts of a user's request.
_RETRY_INTERVAL = 1.0
#: Interference after which Rancher drains upgraded nodes again.
DRAINS_AGAIN = CHANGES_STRATEGY | CHANGES_GENERATION
RIVAL, NEXT = "rival", "next"


@dataclass(kw_only=True)
class RunResult:
    """The broken rules of a run."""

    draw: RandomPlan
    #: Broken rules, one sentence each.
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Describe it, with the command that repeats it."""
        found = "".join(f"- {fault}\n" for fault in self.faults)
        return (
            f"{self.draw}\n{found}repeat it: .venv/bin/python -m tests.support.random_runs.random_run {self.draw.seed}"
        )


def run_seed(seed: int) -> RunResult:
    """Run the upgrade of a seed, in a new loop, and print the seed."""
    drawn = draw(seed)
    print(RunResult(draw=drawn))  # noqa: T201  # shown with a failure only
    try:
        return virtual_time.run(run(drawn))
    except Exception as error:
        error.add_note(str(RunResult(draw=drawn)))
        raise


async def run(drawn: RandomPlan) -> RunResult:
    result = RunResult(draw=drawn)
    backends: list[AuditedBackend] = []

    def backend(seed: int) -> AuditedBackend:
        backends.append(AuditedBackend(seed))
        return backends[0]

    async with Simulation(drawn.scenario, seed=drawn.seed, backend=backend) as simulation:
        observers = _observers(drawn, simulation)
        observed = PlanObserver(simulation.server.storage)
        # Half of the runs are those of our own toolkit.
        options = OWN if drawn.seed % 2 else RunOptions()
        stage = replace(await UpgradeRun.set_up(simulation), skew=drawn.skew, options=options)
        await end_state_checks.plant(simulation)
        users = UserActions(stage, drawn, await end_state_checks.others(simulation))
        for name in drawn.faults:
            simulation.middleware.add(FAULTS[name])
        try:
            async with restarted(stage, drawn.interruptions):
                await users.run()
            # A manager that starts after the end changes nothing.
            async with stage.life(seed="life after the end"):
                await asyncio.sleep(_EVENT_SECONDS)
            await users.end()
        except TimeoutError:
            plans = (await simulation.client().list(UPGRADE_PLANS)).items
            states = [f"{objects.name(plan)}: {json.dumps(objects.status(plan))}" for plan in plans]
            result.faults.append(f"stuck: {'; '.join(states)}")
        result.faults += backends[0].audit.violations
        result.faults += unexpected(drawn, observed.seen)
        result.faults += users.faults
        result.faults += [violation for observer in observers for violation in observer.violations]
    return result


def _observers(drawn: RandomPlan, simulation: Simulation) -> tuple[NodeOrder, SuccessTruth]:
    """Observe every change of the cluster."""
    acts, storage = {act.what for act in drawn.interference}, simulation.server.storage
    restarted_nodes = {act.node for act in drawn.interference if act.what in {RESTARTS, OFF_EARLY}}
    order = NodeOrder(
        storage,
        release_os=drawn.scenario.release.os_image,
        loose=not CHANGES_STRATEGY.isdisjoint(acts),
        restarted=restarted_nodes,
        by_hand=BY_HAND in acts,
        set_back=SET_BACK in acts,
    )
    steady = acts.isdisjoint(MOVES_NODES | DRAINS_AGAIN)
    return order, SuccessTruth(storage, drawn.scenario, lateness=_lateness(drawn), steady=steady)


def unexpected(drawn: RandomPlan, seen: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the blockers of an undisturbed run: nothing in it lasts for longer than its deadline, except pauses.

    A plan that ended before may have left the only node cordoned that takes the VMs of another one.
    """
    if drawn.faults or drawn.interference or drawn.control.holders:
        return []
    has_held = drawn.failing is not None or drawn.deleted is not None
    known = {BlockerReason.NODE_PAUSED} | (FOLLOWED if has_held else set())
    return [f"blocker {'/'.join(filter(None, one))}" for one in seen if one[0] not in known]


def _lateness(drawn: RandomPlan) -> float:
    """Return for how many seconds caches may be out of date."""
    if any(name.startswith("watches") for name in drawn.faults):
        return math.inf
    return _SETTLE_SECONDS / 2 if drawn.faults else _PROMPT


class UserActions:
    """The actions of users, and checks of the results."""

    def __init__(self, stage: UpgradeRun, drawn: RandomPlan, before: dict[str, Any]) -> None:
        self._stage = stage
        self._drawn = drawn
        #: The values that each setting may have in the end.
        self._before: dict[str, tuple[Any, ...]] = {name: (was,) for name, was in before.items()}
        #: The plan that did not succeed and is still there, and the one that has to succeed.
        self._failed: UpgradeRun | None = None
        self._last = stage
        self._machines = MachinesOn(stage.simulation)
        self.faults: list[str] = []
        self._others = {act.what for act in drawn.interference}
        self._keeps_strategy = CHANGES_STRATEGY.isdisjoint(self._others)
        for act, (name, value) in SET_BY_USERS.items():
            if act in self._others and name in before:
                # The act may come too late for the plan.
                self._before[name] = (*self._before[name], value)

    async def run(self) -> None:
        """Run all plans to their end."""
        drawn = self._drawn
        first = await self._begin()
        async with (
            in_background(_pause(first, drawn)),
            in_background(_interfere(first, drawn)),
            in_background(follow_remedies(first.client)),
            in_background(resume_held(first.client, drawn.control)),
            in_background(pause(first.client, first.name, drawn.control, retry=_retry)),
        ):
            if drawn.deleted is not None:
                await _reach(first, drawn.deleted)
                await _delete(first)
                await self._follow(first)
            elif await first.until_ended() == FAILED and drawn.failing is not None:
                await _until_restored(first)
                self.faults += await end_state_checks.check_failure(first, drawn.failing)
                self.faults += await end_state_checks.check_frozen(first, self._before, strategy=self._keeps_strategy)
                self.faults += await end_state_checks.check_hosts(first)
                await (self._resume(first) if drawn.resumes else self._follow(first, is_there=True))
            else:
                self._last = first
        await asyncio.sleep(_SETTLE_SECONDS)

    async def end(self) -> None:
        simulation = self._stage.simulation
        exact = DRAINS_AGAIN.isdisjoint(self._others)
        self.faults += await end_state_checks.check_success(self._last, exact=exact)
        self.faults += await end_state_checks.check_nodes(simulation)
        self.faults += await end_state_checks.check_hosts(self._last)
        drained = next((act.node for act in self._drawn.interference if act.what == BY_HAND), "")
        self.faults += await self._machines.missing(drained_by_hand=drained)
        self.faults += await end_state_checks.check_others(simulation, self._before, strategy=self._keeps_strategy)
        self.faults += await end_state_checks.check_leftovers(simulation, [self._stage.name, RIVAL, NEXT])

    async def _begin(self) -> UpgradeRun:
        """Create the first plan, and its rival; return the one that runs."""
        stage, drawn = self._stage, self._drawn
        if drawn.rival is None:
            await _create(stage, drawn.spec, drawn.annotations)
            return stage
        rival = replace(stage, name=RIVAL)
        if drawn.rival.phases:
            await _create(stage, drawn.spec, drawn.annotations)
            await _reach(stage, drawn.rival)
            await _create(rival, BY_VERSION, drawn.annotations)
        else:
            await asyncio.gather(
                _create(stage, drawn.spec, drawn.annotations), _create(rival, drawn.spec, drawn.annotations)
            )
            await _until(stage, _is_decided)
        await _until(rival, _is_decided)
        is_first = condition(await rival.plan(), "Available")[1] == "ConcurrentUpgradeBlocked"
        first, queued = (stage, rival) if is_first else (rival, stage)
        self.faults += await end_state_checks.check_queued(queued)
        # It would start once the first one has ended.
        await _delete(queued)
        return first

    async def _resume(self, first: UpgradeRun) -> None:
        """Request the next attempt of the plan that has failed; it must succeed."""
        self._drawn.scenario.repair()
        await asyncio.sleep(self._drawn.following.pause)
        self._last = first
        attempt = MergePatch({"spec": {"attempt": 2}})
        await _retry(partial(first.client.patch, UPGRADE_PLANS, first.name, attempt))
        await _until(first, lambda plan: objects.status(plan).get("attempt") == 2)
        await first.until_ended()

    async def _follow(self, first: UpgradeRun, *, is_there: bool = False) -> None:
        """Create the plan after the first one; it must succeed."""
        drawn, following = self._drawn, self._drawn.following
        drawn.scenario.repair()
        await asyncio.sleep(following.pause)
        if is_there and not following.overlaps:
            await _delete(first)
        self._last = first if following.same_name else replace(first, name=NEXT)
        await _create(self._last, drawn.control.of(following.spec), {**drawn.annotations, **following.annotations})
        if is_there and following.overlaps:
            await self._last.until("ClusterUpgrading", *TERMINAL)
            await _delete(first)
        await self._last.until_ended()


async def _delete(stage: UpgradeRun) -> None:
    client = stage.simulation.client()
    await _retry(lambda: client.delete(UPGRADE_PLANS, stage.name))
    await stage.until("deleted")


async def _create(stage: UpgradeRun, spec: dict[str, Any], annotations: dict[str, str]) -> None:
    await _retry(lambda: stage.create_plan(spec, annotations=annotations))


def _is_decided(plan: Object) -> bool:
    return bool(objects.condition(plan, "Available"))


async def _retry(act: Callable[[], Awaitable[object]]) -> None:
    """Retry a user's request while the API server is unavailable."""
    while True:
        try:
            await act()
        except Transient:
            await asyncio.sleep(_RETRY_INTERVAL)
        else:
            return


async def _reach(stage: UpgradeRun, instant: Instant) -> None:
    """Wait for the instant or an earlier end. Raises TimeoutError."""

    def is_there(plan: Object) -> bool:
        values = phases_of(plan)
        return len(values) >= instant.phases or not TERMINAL.isdisjoint(values)

    await _until(stage, is_there)
    await asyncio.sleep(instant.seconds)


async def _until_restored(stage: UpgradeRun) -> None:
    """Wait until a failed plan has reverted its overrides. Raises TimeoutError."""
    await _until(stage, lambda plan: not blocks_next_plan(objects.status(plan)))


async def _until(stage: UpgradeRun, is_so: Callable[[Object], bool]) -> None:
    """Poll the plan, also while the API server is unavailable. Raises TimeoutError."""
    async with asyncio.timeout(STUCK):
        while True:
            with suppress(Transient):
                if is_so(await stage.polled()):
                    return
            await asyncio.sleep(_INTERVAL)


async def _interfere(stage: UpgradeRun, drawn: RandomPlan) -> None:
    """Let the others act, at the same time."""

    async def act(one: Interference) -> None:
        # A plan that is stuck is reported by those who wait for its end.
        with suppress(NotFound, TimeoutError):
            await _reach(stage, Instant(phases=one.phases, seconds=one.seconds))
            await _retry(partial(one.act, stage))

    async with asyncio.TaskGroup() as group:
        group.create_task(_follow_advice(stage))
        for one in (*drawn.interference, *drawn.control.holders):
            group.create_task(act(one))


async def _follow_advice(stage: UpgradeRun) -> None:
    """Let Rancher drain all nodes if it has upgraded some undrained: others removed the hooks while no manager ran."""
    is_lost = False
    while not is_lost:
        await asyncio.sleep(_READ_INTERVAL)
        with suppress(NotFound, Transient):
            blockers = objects.status(await stage.plan()).get("blockers") or ()
            is_lost = any(one["reason"] == BlockerReason.HOOK_LOST for one in blockers)
    await _retry(stage.plan_again)


async def _pause(stage: UpgradeRun, drawn: RandomPlan) -> None:
    """Pause and resume nodes."""
    client = stage.simulation.client()
    for seconds, nodes in (*drawn.pauses, (20.0, ())):
        await asyncio.sleep(seconds)
        patch = MergePatch({"spec": {"nodeUpgradeOption": {"pauseNodes": list(nodes)}}})
        try:
            await _retry(partial(client.patch, UPGRADE_PLANS, stage.name, patch))
        except NotFound:
            return


if __name__ == "__main__":
    for _seed in sys.argv[1:]:
        print(run_seed(int(_seed)))  # noqa: T201  # a program
