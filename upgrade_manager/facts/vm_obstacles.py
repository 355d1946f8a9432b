"""The obstacles of a VM that stays on a node which KubeVirt evacuates, and their remedies.

The pre-drain Job (toolkit/vms/evacuation.py) reports the obstacles of the VMs that the Job waits for, and the finder of
blockers (blockers/migrations.py) reports VMs that take too long. vm_shutdown.py and kubevirt.py
report VMs that do not stop. live_migration.py has Harvester's rule for the VMs that the Job stops before.

KubeVirt (v1.5 to v1.7, evacuation controller) migrates an instance away from a node with the drain taint if its
eviction strategy requires it, its condition LiveMigratable is True, and none of its migrations is unfinished.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Change, Remedy, saving
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.migrations import has_begun
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object

#: The step of the pre-drain Job that waits until the VMs have left (toolkit/commands/pre_drain.py).
EVACUATION = "wait-for-evacuation"
#: KubeVirt's label for the node of an instance.
NODE_LABEL = "kubevirt.io/nodeName"
#: Eviction strategies with which KubeVirt does not migrate a VM by itself; a user can migrate the VM.
_STAYS = frozenset({"None", "External"})


@dataclass(frozen=True, slots=True, kw_only=True)
class VMObstacle:
    """The reason for which an instance has not left its node yet."""

    why: str
    #: The remedies, each with its command; empty if KubeVirt has to act.
    ways_out: tuple[Remedy, ...] = ()
    #: The remedies that interrupt a VM which KubeVirt could move, after all others.
    last_ways_out: tuple[Remedy, ...] = ()
    #: True if KubeVirt never moves the instance: only its user can.
    needs_user: bool = False
    #: True if KubeVirt's controller of migrations has to act next.
    needs_controller: bool = False
    #: True if KubeVirt moves other VMs first.
    is_queued: bool = False


def vm_obstacle(instance: Object, migrations: Sequence[Object], *, others_move: bool = False) -> VMObstacle:
    """Return why the instance is still on its node; `migrations` are its migrations from the node, oldest first.

    `others_move` is True while KubeVirt migrates other instances: KubeVirt migrates few at once.
    """
    if objects.is_deleting(instance):
        return stopping(instance)
    active = [one for one in migrations if not is_final(one)]
    if active and (has_begun(active[-1]) or not others_move):
        return _migrating(instance, active[-1], before=[one for one in migrations if is_final(one)])
    stays = staying(instance)
    if stays is not None:
        return stays
    if others_move and (active or not migrations):
        return VMObstacle(why="KubeVirt migrates other VMs first", is_queued=True)
    if not has_machine(instance):
        return VMObstacle(why=_last(migrations), ways_out=way_to_stop(instance), needs_controller=True)
    stop = (_stop(instance, "Or stop it"),)
    return VMObstacle(why=_last(migrations), ways_out=_migrate(instance), last_ways_out=stop, needs_controller=True)


def arriving(instance: Object, node: str) -> VMObstacle | None:
    """Return why the drain of `node` waits for an instance elsewhere: an unfinished migration to that node.

    The migration has begun before KubeVirt's drain taint was set.
    """
    state = objects.mapping(instance, "status", "migrationState")
    has_ended = objects.is_true(state, "completed") or objects.is_true(state, "failed")
    is_there = objects.text(instance, "status", "nodeName") == node
    if has_ended or is_there or objects.text(state, "targetNode") != node:
        return None
    cancel = Remedy("Cancel its migration", command=f"virtctl migrate-cancel {_named(instance)}")
    return VMObstacle(why="it migrates to this node", ways_out=(cancel,))


def stopping(instance: Object) -> VMObstacle:
    """Return why an instance that was requested to stop still runs.

    A stop is a request to a VirtualMachine, so that only its user ends an instance without a VirtualMachine.
    """
    if has_machine(instance):
        force = f"virtctl stop {_named(instance)} --force --grace-period=0"
        way_out = Remedy("If its system does not shut down, force it", command=force)
        return VMObstacle(why="it is stopping", ways_out=(way_out,))
    if objects.is_deleting(instance):
        console = f"virtctl console {_named(instance)}"
        way_out = Remedy("If its system does not shut down, shut it down there", command=console)
        return VMObstacle(why="it is stopping", ways_out=(way_out,))
    return without_machine(instance)


def without_machine(instance: Object) -> VMObstacle:
    """Return why an instance whose VirtualMachine does not exist still runs."""
    return VMObstacle(why="it has no VirtualMachine", ways_out=way_to_stop(instance), needs_user=True)


def has_machine(instance: Object) -> bool:
    """Return True if a VirtualMachine owns the instance."""
    owners = objects.items(instance, "metadata", "ownerReferences")
    return any(objects.text(one, "kind") == VIRTUAL_MACHINES.kind for one in owners)


def way_to_stop(instance: Object, *, after: str = "") -> tuple[Remedy, ...]:
    """Return the commands that end the instance: virtctl addresses the VirtualMachine, which may not exist.

    `after` is the condition with which the text begins.
    """
    if has_machine(instance):
        return (_stop(instance, f"{after}, stop the VM" if after else "Stop the VM"),)
    named = f"-n {objects.namespace(instance)} {objects.name(instance)}"
    file = f"vmi-{objects.namespace(instance)}-{objects.name(instance)}.yaml"
    save = Remedy("Save the instance", command=saving(f"kubectl get vmi {named} -o yaml", file))
    text = f"{after}, delete it" if after else "Delete it"
    # KubeVirt refuses to create an instance with the labels of one that runs: the file is a template.
    return save, Remedy(text, command=f"kubectl delete vmi {named}")


def staying(instance: Object) -> VMObstacle | None:
    """Return why KubeVirt never moves the instance by itself; None if KubeVirt moves the instance."""
    movable = objects.condition(instance, "LiveMigratable")
    if objects.text(movable, "status") == "False":
        words = (objects.text(movable, "reason"), objects.excerpt(movable, "message"))
        why = f"KubeVirt cannot migrate it: {': '.join(filter(None, words)) or 'LiveMigratable is False'}"
        return VMObstacle(why=why, ways_out=way_to_stop(instance), needs_user=True)
    strategy = objects.text(instance, "spec", "evictionStrategy")
    if strategy not in _STAYS:
        return None
    ways_out = (*_migrate(instance), _stop(instance, "Or stop it")) if has_machine(instance) else ()
    why = f"its eviction strategy is {strategy}"
    return VMObstacle(why=why, ways_out=ways_out or way_to_stop(instance), needs_user=True)


def _migrating(instance: Object, migration: Object, *, before: Sequence[Object]) -> VMObstacle:
    named, phase = f"migration {objects.name(migration)}", objects.text(migration, "status", "phase")
    # KubeVirt tries again after a failure, whose reason the new migration does not have.
    failed = [one for one in before if objects.text(one, "status", "phase") == "Failed"]
    why = f"{named} {f'is {phase}' if phase else 'has not begun'}" + (f"; {_last(failed)}" if failed else "")
    if not phase:
        return VMObstacle(why=why, last_ways_out=_stop_last(instance) if failed else (), needs_controller=True)
    again = f"virtctl migrate-cancel {_named(instance)}"
    if not has_begun(migration):
        # KubeVirt refuses another migration beside this one, for which it waits longer after each failure.
        now = (Remedy("Let KubeVirt migrate it at once", command=again),) if failed else ()
        return VMObstacle(why=why, ways_out=(_show(migration, "Show why"), *now, *_stop_last(instance)))
    cancel = Remedy("If it makes no progress, let KubeVirt begin again", command=again)
    return VMObstacle(why=why, ways_out=(_show(migration, "Show its progress"), cancel, *_stop_last(instance)))


def _show(migration: Object, what: str) -> Remedy:
    return Remedy(what, command=f"kubectl describe vmim -n {objects.namespace(migration)} {objects.name(migration)}")


def _stop_last(instance: Object) -> tuple[Remedy, ...]:
    """Return the last remedy: a VM that moves need not be stopped."""
    return way_to_stop(instance, after="If nothing else helps")


def _last(migrations: Sequence[Object]) -> str:
    if not migrations:
        return "it has no migration"
    last = migrations[-1]
    why = objects.excerpt(last, "status", "migrationState", "failureReason")
    phase = objects.text(last, "status", "phase")
    return f"migration {objects.name(last)} is {phase}" + (f": {why}" if why else "")


def _migrate(instance: Object) -> tuple[Remedy, ...]:
    """Return the command that migrates the VM."""
    return (Remedy("Migrate it", command=f"virtctl migrate {_named(instance)}"),)


def _stop(instance: Object, text: str) -> Remedy:
    place = {"namespace": objects.namespace(instance), "name": objects.name(instance)}
    stop, start = (f"virtctl {verb} {_named(instance)}" for verb in ("stop", "start"))
    change = Change(kind=VIRTUAL_MACHINES.kind, **place, field="status.printableStatus", original="Running")
    return Remedy(text, command=stop, undo=start, changes=(change,))


def _named(instance: Object) -> str:
    return f"{objects.name(instance)} -n {objects.namespace(instance)}"
