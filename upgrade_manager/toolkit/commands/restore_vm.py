"""`restore-vm`: starts the VMs that were stopped for a node's upgrade."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.vm_start import not_restarted
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.retry import jittered
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.plan_events import NORMAL, WARNING
from upgrade_manager.toolkit.run.steps import RETRIED, Step
from upgrade_manager.toolkit.vms import restore_list
from upgrade_manager.toolkit.vms.kubevirt import Started, kubevirt_problem, start

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: The source of the events.
SOURCE = "restore-vm"
KUBEVIRT_TIMEOUT = 1800.0
#: Seconds for KubeVirt to accept all starts. The Job's deadline is 40 minutes.
START_TIMEOUT = 300.0
_POLL = 5.0

_log = structlog.get_logger(__name__)


async def kubevirt_is_away(context: ToolkitContext) -> str:
    """Return why KubeVirt cannot start VMs; empty if it can, or if no VM is listed for the node."""
    return await kubevirt_problem(context.client) if await restore_list.recorded(context) else ""


async def start_vms(context: ToolkitContext) -> None:
    """Start the listed VMs. Raises StepFailed with those that did not start."""
    names = await restore_list.recorded(context)
    run = _Restoration(context)
    await run.complete(names)
    good = len(run.started)
    if run.failed:
        reasons = name_list([f"{name}: {reason}" for name, reason in run.failed.items()])
        raise StepFailed(f"success: {good}, failed: {len(run.failed)}: {reasons}")
    absent = f", not found: {name_list(run.absent)}" if run.absent else ""
    text = f"Restored {good} VMs for {_subject(context)}, success: {good}, failed: 0{absent}"
    await context.events.record(SOURCE, type_=NORMAL, reason="RestoreVMCompleted", message=text)


async def report_failure(context: ToolkitContext, cause: str) -> None:
    """Record the event of VMs that stay off."""
    job = context.job_name(JobType.RESTORE_VM)
    text = not_restarted(job, cause=cause)
    await context.events.record(SOURCE, type_=WARNING, reason="RestoreVMFailed", message=text)


class _Restoration:
    """One run over the listed VMs."""

    def __init__(self, context: ToolkitContext) -> None:
        self._context = context
        self.started: list[str] = []
        self.absent: list[str] = []
        #: The last error of each VM that has not started.
        self.failed: dict[str, str] = {}

    async def complete(self, names: list[str]) -> None:
        """Return when each VM is started, absent or failed; a start that may succeed later is retried."""
        pending, deadline = names, loop_time() + START_TIMEOUT
        while pending:
            pending = [name for name in pending if await self._try(name)]
            if not pending or loop_time() >= deadline:
                return
            await asyncio.sleep(jittered(_POLL, self._context.random))

    async def _try(self, name: str) -> bool:
        """Start a VM, and return True if the start has to be retried."""
        try:
            outcome = await start(self._context.client, name)
        except (KubeError, StepFailed) as error:
            self.failed[name] = str(error)
            return isinstance(error, RETRIED)
        self.failed.pop(name, None)
        if outcome is Started.ABSENT:
            _log.info("VM not found, skipped", vm=name)
            self.absent.append(name)
        else:
            _log.info("VM started", vm=name)
            self.started.append(name)
        return False


def _subject(context: ToolkitContext) -> str:
    return f"node {context.node} during upgrade {context.plan}"


STEPS = (
    Step(name="wait-for-kubevirt", timeout=KUBEVIRT_TIMEOUT, missing=kubevirt_is_away, failed=report_failure),
    Step(name="start-vms", timeout=START_TIMEOUT + 120, act=start_vms, failed=report_failure),
)
