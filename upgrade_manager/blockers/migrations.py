"""Finds VMs that do not leave a node before its drain; the pre-drain Job shares the rule in facts/vm_obstacles.py.

table.py lists the finder; toolkit/vms/evacuation.py is the Job that waits.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from upgrade_manager.api import migration_failure
from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import HARVESTER_SYSTEM, TAINT_KUBEVIRT_DRAIN
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.deadlines import evacuation
from upgrade_manager.blockers.deployments import Outage, outage
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.object_view import Unreadable
from upgrade_manager.blockers.wait import EvacuationWait
from upgrade_manager.facts.deployments import restart
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.kubevirt import KUBEVIRT
from upgrade_manager.facts.label_selectors import one_of
from upgrade_manager.facts.migrations import (
    TARGET_LABEL,
    MigrationLimits,
    has_begun,
    is_beginning,
    is_slow,
    migrations_of,
    others_move,
    since_arrival,
)
from upgrade_manager.facts.taints import has_drain_taint
from upgrade_manager.facts.vm_obstacles import NODE_LABEL, arriving, vm_obstacle
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import KUBEVIRTS, MIGRATIONS, NODES, VIRTUAL_MACHINE_INSTANCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.facts.vm_obstacles import VMObstacle
    from upgrade_manager.kube.objects import Object

#: KubeVirt's controller of migrations, and the remedy if it hangs.
_CONTROLLER = "virt-controller"
_RESTART = restart(HARVESTER_SYSTEM, _CONTROLLER)
_CORRECT = Remedy("Correct the annotation of the VirtualMachine, or remove it")
_INSTANCE_LABEL = "kubevirt.io/vmi-name"


def _blockers(view: View, wait: EvacuationWait) -> Iterator[Blocker]:
    """Yield the VMs that are still on the node or migrate to it, once KubeVirt evacuates the node."""
    is_tainted = _is_evacuated(view, wait.node) if wait.is_running else True
    if not is_tainted and not wait.is_evacuating:
        return
    selector = f"{NODE_LABEL}={wait.node}"
    on_node = view.objects(Selection(resource=VIRTUAL_MACHINE_INSTANCES, label_selector=selector))
    instances = [one for one in on_node if not is_final(one)]
    if instances:
        yield from _staying(view, wait, instances, is_tainted=is_tainted)
    selector = f"{TARGET_LABEL}={wait.node}"
    for one in view.objects(Selection(resource=VIRTUAL_MACHINE_INSTANCES, label_selector=selector)):
        obstacle = arriving(one, wait.node)
        if obstacle is not None:
            yield _blocker(wait, one, obstacle, what=f"the drain of node {wait.node} waits for it")


def _staying(view: View, wait: EvacuationWait, instances: Sequence[Object], *, is_tainted: bool) -> Iterator[Blocker]:
    """Yield the VMs that are still on the node, without those that KubeVirt moves."""
    migrations = _migrations(view, instances)
    own = [since_arrival(migrations_of(one, migrations)) for one in instances]
    labelled = view.objects(Selection(resource=VIRTUAL_MACHINE_INSTANCES, label_selector=TARGET_LABEL))
    limits = _limits(view) if labelled or any(map(has_begun, chain.from_iterable(own))) else MigrationLimits()
    hanging = _stopped_controller(view)
    # The taint is set again at each check: its removal alone keeps no VM, and none that KubeVirt has tried to migrate.
    wiped = None if is_tainted else _wiped(wait.node)
    queued = others_move(own, labelled, limits=limits, now=view.now)
    invalid = migration_failure.read_report(wait.invalid_policies)
    for one, found, is_queued in zip(instances, own, queued, strict=True):
        obstacle = vm_obstacle(one, found, others_move=is_queued)
        if not obstacle.is_queued and not _moves(view, one, found, limits):
            what = f"it does not leave node {wait.node}"
            stopped = hanging or (None if found else wiped)
            stopped = stopped if obstacle.needs_controller else None
            value = invalid.get(objects.qualified_name(one))
            yield _blocker(wait, one, obstacle, what=what, stopped=stopped, invalid=value)


def _is_evacuated(view: View, node: str) -> bool:
    """Return False before the pre-drain Job lets KubeVirt move the VMs: it waits for volumes first."""
    found = view.objects(Selection(resource=NODES, field_selector=f"metadata.name={node}"))
    return any(map(has_drain_taint, found))


def _wiped(node: str) -> Outage:
    """Return the outage of an evacuation whose taint another client removes again and again."""
    command = f"kubectl taint node {node} {TAINT_KUBEVIRT_DRAIN}=draining:NoSchedule --overwrite"
    problem = f"another client removes taint {TAINT_KUBEVIRT_DRAIN} of the node"
    remedies = (Remedy("Stop the client that removes it"), Remedy("Set it again", command=command))
    return Outage(problem=problem, remedies=remedies)


def _moves(view: View, instance: Object, migrations: Sequence[Object], limits: MigrationLimits) -> bool:
    """Return True for a VM whose only migration takes no longer than it may, or was created a short while ago."""
    if len(migrations) == 1 and has_begun(migrations[0]):
        return not is_slow(instance, migrations[0], limits=limits, now=view.now)
    return is_beginning(migrations, view.now)


def _limits(view: View) -> MigrationLimits:
    """Return KubeVirt's limits; its defaults if the KubeVirt object cannot be read."""
    try:
        found = view.objects(Selection(resource=KUBEVIRTS, namespace=HARVESTER_SYSTEM))
    except Unreadable:
        return MigrationLimits()
    return MigrationLimits.of(next((one for one in found if objects.name(one) == KUBEVIRT), None))


def _migrations(view: View, instances: Sequence[Object]) -> Sequence[Object]:
    """Return the migrations of VMs of these names only, because a large cluster keeps thousands of migrations."""
    selector = one_of(_INSTANCE_LABEL, map(objects.name, instances))
    return view.objects(Selection(resource=MIGRATIONS, label_selector=selector)) if selector else ()


def _stopped_controller(view: View) -> Outage | None:
    """Return the outage of KubeVirt's controller of migrations; None also if its Deployment cannot be read."""
    try:
        return outage(view, HARVESTER_SYSTEM, _CONTROLLER)
    except Unreadable:
        return None


def _blocker(
    wait: EvacuationWait,
    instance: Object,
    obstacle: VMObstacle,
    *,
    what: str,
    stopped: Outage | None = None,
    invalid: str | None = None,
) -> Blocker:
    """Return the blocker of a VM; `invalid` is the value of its annotation that names no policy."""
    namespace, name = objects.key(instance)
    why, remedies = obstacle.why, _remedies(obstacle)
    if stopped is not None:
        why, remedies = f"{why}; {stopped.problem}", stopped.remedies
    if invalid is not None:
        why = f"{why}; {migration_failure.invalid(invalid)}"
        # A VM that is stopped for an outage could have migrated after it.
        remedies = (_CORRECT, *remedies) if stopped is None else (*remedies, _CORRECT)
    return Blocker(
        reason=BlockerReason.MIGRATION_STUCK,
        kind="VirtualMachineInstance",
        namespace=namespace,
        name=name,
        node=wait.node,
        message=f"VirtualMachineInstance {namespace}/{name}: {what} ({why})",
        remedies=remedies,
        since=wait.released,
    )


def _remedies(obstacle: VMObstacle) -> tuple[Remedy, ...]:
    if not obstacle.needs_controller:
        return obstacle.ways_out
    text = "If the migration does not begin, restart" if obstacle.ways_out else "Restart"
    restart_it = Remedy(f"{text} KubeVirt's controller", command=_RESTART)
    return (*obstacle.ways_out, restart_it, *obstacle.last_ways_out)


FINDERS = (
    Finder(
        wait=EvacuationWait,
        reasons=(BlockerReason.MIGRATION_STUCK,),
        overdue=evacuation,
        find=_blockers,
    ),
)
