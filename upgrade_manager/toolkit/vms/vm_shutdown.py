"""Stops VMs that cannot leave a node, and waits until they are down.

The command pre_drain calls it; vm_stop.py records and stops them, and pipeline/node_upgrade/vm_restore.py starts them
again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.text import name_list
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.live_migration import MigrationTargets
from upgrade_manager.facts.vm_obstacles import NODE_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.resources import NODES, VIRTUAL_MACHINE_INSTANCES
from upgrade_manager.kube.retry import jittered
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.own_plan import own_plan, wanted_plan
from upgrade_manager.toolkit.run.plan_events import NORMAL, WARNING
from upgrade_manager.toolkit.run.steps import RETRIED
from upgrade_manager.toolkit.vms import restore_list, vm_stop
from upgrade_manager.toolkit.vms.restore_list import DETECTOR

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

    Listing: TypeAlias = Callable[[ToolkitContext], Awaitable[list[Object]]]

#: Seconds after the stop request until a VM must be down. KubeVirt ends a guest that does not react after its grace
#: period, which is two minutes in Harvester unless the VM's owner sets a longer period.
STOP_TIMEOUT = 3600.0
#: A step that stops VMs has no other time-out: users' budgets may forbid a stop for any time.
STEP_TIMEOUT = None
_POLL = 5.0
#: Seconds after which an unchanged wait is logged again.
_REPEAT = 60.0

_log = structlog.get_logger(__name__)


async def vms_of_node(context: ToolkitContext) -> list[Object]:
    """Return the instances that run on the node, or are about to."""
    selector = f"{NODE_LABEL}={context.node}"
    found = await context.client.list(VIRTUAL_MACHINE_INSTANCES, label_selector=selector)
    return [one for one in found.items if not is_final(one)]


async def immovable_vms(context: ToolkitContext) -> list[Object]:
    """Return the instances of the node that cannot be live-migrated."""
    instances = await vms_of_node(context)
    if not instances:
        return []
    targets = MigrationTargets((await context.client.list(NODES)).items)
    return [one for one, _ in targets.problems(instances)]


async def all_vms(context: ToolkitContext) -> list[Object]:
    """Return the instances of all nodes and instances without a node, which could start when other VMs have ended."""
    found = await context.client.list(VIRTUAL_MACHINE_INSTANCES)
    return [one for one in found.items if not is_final(one)]


async def vms_running(context: ToolkitContext) -> str:
    """Return the running VMs of all nodes, for a step that stops all VMs."""
    names = [objects.qualified_name(one) for one in await all_vms(context)]
    return f"{len(names)} VMs run: {name_list(names)}" if names else ""


async def record_immovable_vms(context: ToolkitContext) -> None:
    """Record the node's VMs that are about to be stopped, if the plan restores VMs."""
    if await restores_vms(context):
        await restore_list.record(context, await immovable_vms(context))


async def stop_all_vms(context: ToolkitContext) -> None:
    """Stop all VMs before the only node is upgraded, and wait until they are down. Raises StepFailed."""
    await shut_down(context, all_vms, of=all_vms, restores=await restores_vms(context))


async def stop_immovable_vms(context: ToolkitContext) -> None:
    """Stop the node's VMs that cannot be live-migrated, and wait until they are down. Raises StepFailed."""
    await shut_down(context, immovable_vms, of=vms_of_node, restores=await restores_vms(context))


async def restores_vms(context: ToolkitContext) -> bool:
    """Return True if the plan starts stopped VMs again; a plan that was deleted does not."""
    plan = await own_plan(context)
    return plan is not None and objects.is_true(plan, "spec", "restoreVM")


async def shut_down(context: ToolkitContext, choose: Listing, *, of: Listing, restores: bool) -> None:
    """Stop the chosen VMs and wait until they are down. Raises StepFailed with the VMs that do not stop.

    `of` lists all VMs that are observed. Each VM is recorded before its stop: in the plan's ledger, and with `restores`
    for restore-vm.
    """
    run = _Shutdown(context, choose, of=of, restores=restores)
    await run.complete()
    total, failed = len(run.chosen), len(run.running)
    if run.running or run.error:
        reason = run.error or name_list(run.details())
        raise StepFailed(f"{failed} of {total} VMs on node {context.node} did not stop in time: {reason}")
    if context.plan:
        text = f"Shutdown completed for {total} VM(s) on node {context.node}, success: {total}, failed: 0"
        await context.events.record(DETECTOR, type_=NORMAL, reason="VMShutdownCompleted", message=text)


async def _require_plan(context: ToolkitContext) -> None:
    """Raise StepFailed without the plan: nothing would record that the VMs are off, or start them again."""
    if await wanted_plan(context) is None:
        raise StepFailed(f"UpgradePlan {context.plan} was deleted, so that its Job stops no VM of node {context.node}")


async def report_failed_shutdown(context: ToolkitContext, cause: str) -> None:
    """Record the event of a shutdown that failed."""
    if context.plan:
        text = f"Shutdown failed on node {context.node}: {cause}"
        await context.events.record(DETECTOR, type_=WARNING, reason="VMShutdownFailed", message=text)


class _Shutdown:
    """One run of `shut_down`.

    The VMs are chosen once, so that a node that is cordoned for a moment later does not add VMs that can migrate.
    """

    def __init__(self, context: ToolkitContext, choose: Listing, *, of: Listing, restores: bool) -> None:
        self._context = context
        self._choose = choose
        self._list = of
        self._restores = restores
        self._has_chosen = False
        self._logged = -_REPEAT
        #: The uids of the VMs to stop.
        self.chosen: set[str] = set()
        #: The reason why a VM still runs, with the remedy, by the VM's name.
        self.running: dict[str, str] = {}
        #: The last error of listing or recording the VMs.
        self.error = ""
        #: True while users' budgets forbid a stop.
        self._is_forbidden = False

    async def complete(self) -> None:
        """Return when no chosen VM runs, or after the timeout, which begins once no budget forbids a stop."""
        deadline = loop_time() + STOP_TIMEOUT
        while loop_time() < deadline:
            if self._is_forbidden:
                deadline = loop_time() + STOP_TIMEOUT
            try:
                self.error = ""
                await self._check()
                if not self.running:
                    return
            except RETRIED as error:
                self.error = str(error)
            self._log_wait()
            await asyncio.sleep(jittered(_POLL, self._context.random))

    def details(self) -> list[str]:
        """Return the VMs that run, with the reasons."""
        return [f"{name} ({problem})" for name, problem in self.running.items()]

    async def _check(self) -> None:
        if not self._has_chosen:
            instances = await self._choose(self._context)
            self.chosen = {objects.uid(one) for one in instances}
            self._has_chosen = True
        else:
            instances = [one for one in await self._list(self._context) if objects.uid(one) in self.chosen]
        vms = await vm_stop.read(self._context, instances)
        if self._context.plan and any(not one.is_ending for one in vms):
            await _require_plan(self._context)
        stopped = await vm_stop.stop(self._context, vms, restores=self._restores)
        self.running, self._is_forbidden = stopped.running, stopped.is_forbidden

    def _log_wait(self) -> None:
        if loop_time() - self._logged >= _REPEAT:
            self._logged = loop_time()
            _log.info("waiting for VMs to stop", vms=name_list(self.details()), error=self.error)
