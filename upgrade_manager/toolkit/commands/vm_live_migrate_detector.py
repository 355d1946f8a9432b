"""`vm-live-migrate-detector`: prints, records and stops the VMs of a node that cannot be live-migrated."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import NODES
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.steps import Step
from upgrade_manager.toolkit.vms import restore_list
from upgrade_manager.toolkit.vms.vm_shutdown import (
    STEP_TIMEOUT,
    immovable_vms,
    report_failed_shutdown,
    shut_down,
    vms_of_node,
)

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def find_vms(context: ToolkitContext) -> None:
    """Print namespace/name of each VM, one per line."""
    try:
        await context.client.get(NODES, context.node, metadata_only=True)
    except NotFound as error:
        raise StepFailed(f"node {context.node} not found") from error
    names = sorted(objects.qualified_name(one) for one in await immovable_vms(context))
    sys.stdout.write("".join(f"{name}\n" for name in names))


async def record_vms(context: ToolkitContext) -> None:
    """Record the VMs for restore-vm, with --upgrade."""
    if context.plan:
        await restore_list.record(context, await immovable_vms(context))


async def stop_vms(context: ToolkitContext) -> None:
    """Stop the VMs and wait until they are down, with --shutdown."""
    if context.shutdown:
        await shut_down(context, immovable_vms, of=vms_of_node, restores=bool(context.plan))


STEPS = (
    Step(name="find-vms", timeout=300, act=find_vms),
    Step(name="record-vms", timeout=300, act=record_vms, failed=restore_list.report_failed_record),
    Step(name="stop-vms", timeout=STEP_TIMEOUT, act=stop_vms, failed=report_failed_shutdown),
)
