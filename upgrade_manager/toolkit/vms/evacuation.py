"""Waits until KubeVirt has moved all VMs from a node with the drain taint, and stops those that it may stop.

The command pre_drain runs these steps; blockers/migrations.py reports a VM that stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import HARVESTER_SYSTEM, JobType
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.evictions import LEFTOVER, delete_leftover, is_of_kubevirt, leftovers
from upgrade_manager.facts.kubevirt import KUBEVIRT
from upgrade_manager.facts.migrations import TARGET_LABEL, MigrationLimits, migrations_of, others_move, since_arrival
from upgrade_manager.facts.vm_obstacles import VMObstacle, arriving, vm_obstacle
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import (
    JOBS,
    KUBEVIRTS,
    MIGRATIONS,
    POD_DISRUPTION_BUDGETS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_INSTANCES,
)
from upgrade_manager.toolkit.vms import stop_policy, vm_stop
from upgrade_manager.toolkit.vms.drain_taint import set_drain_taint_again
from upgrade_manager.toolkit.vms.kubevirt import described
from upgrade_manager.toolkit.vms.vm_shutdown import restores_vms, vms_of_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_log = structlog.get_logger(__name__)
_PREFIX = "kubevirt-evacuation-"
#: The annotation of migrations with the node that the VM leaves.
_SOURCE = "kubevirt.io/evacuationMigration"
#: Phases in which KubeVirt copies the guest's memory, during which the VM is not stopped.
_COPYING = frozenset({"PreparingTarget", "TargetReady", "Running"})


async def vms_remaining(context: ToolkitContext) -> str:
    """Return the VMs that run on the node or migrate to it, each with the reason for its wait."""
    instances, labelled = await vms_of_node(context), await _labelled(context)
    coming = [(one, obstacle) for one in labelled if (obstacle := arriving(one, context.node)) is not None]
    if not instances and not coming:
        return ""
    migrations = (await context.client.list(MIGRATIONS)).items
    own = [since_arrival(migrations_of(one, migrations)) for one in instances]
    queued = others_move(own, labelled, limits=await _limits(context, labelled), now=context.now())
    found = zip(instances, own, queued, strict=True)
    staying = [(one, vm_obstacle(one, each, others_move=is_queued)) for one, each, is_queued in found]
    names = [f"{objects.qualified_name(one)} ({_state(obstacle)})" for one, obstacle in (*staying, *coming)]
    return f"VMs on node {context.node}: {name_list(names)}"


async def _labelled(context: ToolkitContext) -> Sequence[Object]:
    """Return the instances with TARGET_LABEL: those that migrate, or have migrated."""
    return (await context.client.list(VIRTUAL_MACHINE_INSTANCES, label_selector=TARGET_LABEL)).items


async def _limits(context: ToolkitContext, labelled: Sequence[Object]) -> MigrationLimits:
    """Return KubeVirt's limits, which matter only if VMs of the cluster may migrate."""
    if not labelled:
        return MigrationLimits()
    return MigrationLimits.of(await context.client.find(KUBEVIRTS, KUBEVIRT, namespace=HARVESTER_SYSTEM))


async def evacuate(context: ToolkitContext) -> None:
    """Set the drain taint again if another client has removed it, and stop VMs that KubeVirt has failed to move."""
    await set_drain_taint_again(context)
    await stop_stranded_vms(context)


async def stop_stranded_vms(context: ToolkitContext) -> None:
    """Stop VMs whose evacuation has failed since this drain began, where the plan or the VM has the policy Stop.

    Other VMs are left to their users, while KubeVirt tries again without end.
    """
    vms = await stop_policy.to_stop(context, await vm_stop.read(context, await _stranded(context)))
    stopped = await vm_stop.stop(context, vms, restores=bool(vms) and await restores_vms(context))
    ending = {one.name for one in vms if one.is_ending}
    for name, problem in stopped.running.items():
        if name not in ending:
            _log.warning("VM stops, or cannot be stopped", vm=name, state=problem)


async def budgets_remaining(context: ToolkitContext) -> str:
    """Return the PodDisruptionBudgets of evacuations, and of VMs that do not exist any more."""
    budgets = (await context.client.list(POD_DISRUPTION_BUDGETS, metadata_only=True)).items
    if not any(map(is_of_kubevirt, budgets)):
        return ""
    instances = await context.client.list(VIRTUAL_MACHINE_INSTANCES, metadata_only=True)
    found = leftovers(budgets, set(map(objects.uid, instances.items)))
    if not found:
        return ""
    names = name_list([objects.qualified_name(one) for one in found])
    return f"PodDisruptionBudgets {LEFTOVER}: {names}. If they stay, delete them: {delete_leftover(found[0]).command}"


async def _stranded(context: ToolkitContext) -> list[Object]:
    instances = await vms_of_node(context)
    if not instances:
        return []
    began = await _drain_began(context)
    migrations = (await context.client.list(MIGRATIONS)).items
    return [one for one in instances if _has_failed(migrations_of(one, migrations), node=context.node, since=began)]


async def _drain_began(context: ToolkitContext) -> str:
    """Return the creation time of the drain's Job, by the API server's clock; without the Job, that of the plan."""
    job = context.job_name(JobType.PRE_DRAIN)
    found = await context.client.find(JOBS, job, namespace=HARVESTER_SYSTEM, metadata_only=True)
    if found is None:
        found = await context.client.get(UPGRADE_PLANS, context.plan, metadata_only=True)
    return objects.text(found, "metadata", "creationTimestamp")


def _has_failed(migrations: Sequence[Object], *, node: str, since: str) -> bool:
    """Return True if an evacuation from the node has failed since that time, and no migration copies memory."""
    if any(objects.text(one, "status", "phase") in _COPYING for one in migrations):
        return False
    return any(
        objects.name(one).startswith(_PREFIX)
        and objects.text(one, "metadata", "annotations", _SOURCE) in {node, ""}
        and objects.text(one, "metadata", "creationTimestamp") >= since
        and objects.text(one, "status", "phase") == "Failed"
        for one in migrations
    )


def _state(obstacle: VMObstacle) -> str:
    """Return the obstacle, with the remedy if only a user can remove the obstacle."""
    return described(obstacle) if obstacle.needs_user else obstacle.why
