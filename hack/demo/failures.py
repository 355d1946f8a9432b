"""Failures of a running upgrade, after each of which the plan is retried; follow.py shows the next attempt, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hack.demo.commands import Patch
from hack.demo.remedies import SHOWN
from upgrade_manager.api.attempts import is_requested, retry_command
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_JOB_TYPE, LABEL_NODE
from upgrade_manager.api.node_states import upgraded_nodes
from upgrade_manager.api.phases import FAILED
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.resources import JOBS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from hack.demo.commands import Command
    from hack.demo.remedies import Kubectl
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One way to let an upgrade fail."""

    #: The phase value with which it begins.
    phase: str
    #: The description, in a sentence.
    what: str
    #: Returns the command that causes it; None while that is not possible yet.
    damage: Callable[[Client, Object], Awaitable[Command | None]]


async def _cut_second_node(client: Client, plan: Object) -> Command | None:
    """Let the post-drain Job of the second node run out of time."""
    if upgraded_nodes(objects.status(plan)) == 0:
        return None
    jobs = (await client.list(JOBS, namespace=HARVESTER_SYSTEM, label_selector=f"{LABEL_JOB_TYPE}=post-drain")).items
    nodes = objects.mapping(plan, "status", "nodeUpgradeStatuses")
    for job in jobs:
        is_under_way = objects.text(nodes, objects.labels(job)[LABEL_NODE], "state") == "PostDraining"
        if is_under_way and JobState.of(job).progress is Progress.RUNNING:
            body = {"spec": {"activeDeadlineSeconds": 1}}
            return Patch(resource=JOBS, name=objects.name(job), namespace=HARVESTER_SYSTEM, body=body)
    return None


FAILURES: Mapping[str, Failure] = {
    "failed-node": Failure(
        phase="NodeUpgrading",
        what="the Job that upgrades the second node runs out of time, and the plan fails",
        damage=_cut_second_node,
    )
}


@dataclass(slots=True, kw_only=True)
class _Course:
    name: str
    failure: Failure
    is_caused: bool = False
    #: The time at which the failed plan was seen, in the loop's time.
    failed: float | None = None
    is_sent: bool = False
    #: The plan shows the request, which a watch brings after the response.
    is_retried: bool = False


@dataclass(slots=True, kw_only=True)
class Failures:
    """All failures of one upgrade; `advance` is called whenever the plan may have changed."""

    client: Client
    screen: Screen
    #: The user retries.
    hold: bool
    kubectl: Kubectl
    items: list[_Course] = field(default_factory=list)

    @classmethod
    def of(cls, names: Iterable[str], *, client: Client, screen: Screen, hold: bool, kubectl: Kubectl) -> Failures:
        """Prepare the failures of these names."""
        items = [_Course(name=name, failure=FAILURES[name]) for name in names]
        return cls(client=client, screen=screen, hold=hold, kubectl=kubectl, items=items)

    async def advance(self, plan: Object) -> None:
        """Do what is due. Raises DemoError and KubeError."""
        phase = objects.text(plan, "status", "currentPhase")
        for one in self.items:
            if not one.is_caused and phase == one.failure.phase:
                await self._cause(one, plan)
            elif one.is_caused and not one.is_retried:
                await self._retry(one, plan, phase)

    def goes_on(self, plan: Object) -> bool:
        """Return True for a plan that has ended, and is to be retried."""
        if objects.text(plan, "status", "currentPhase") != FAILED:
            return False
        return is_requested(plan) or any(one.is_caused and not one.is_retried for one in self.items)

    async def _cause(self, one: _Course, plan: Object) -> None:
        damage = await one.failure.damage(self.client, plan)
        if damage is not None:
            one.is_caused = True
            self.screen.show_message(f"\nBreaking ({one.name}): {one.failure.what}\n  {damage}")
            await damage.run(self.client)

    async def _retry(self, one: _Course, plan: Object, phase: str) -> None:
        if one.failed is None:
            if phase == FAILED:
                one.failed = loop_time()
                due = "run this" if self.hold else f"in {SHOWN:.0f} s"
                command = retry_command(objects.name(plan))
                self.screen.show_message(f"\nFailed. Retrying ({due}):\n  {command}")
        elif is_requested(plan) or phase != FAILED:
            one.is_retried = True
        elif not self.hold and not one.is_sent and loop_time() - one.failed >= SHOWN:
            one.is_sent = True
            said = await self.kubectl.run(retry_command(objects.name(plan)))
            self.screen.show_message(f"\n{said}")
