"""The obstacles of a VM that stays on a node which KubeVirt evacuates, and their remedies.

The pre-drain Job (toolkit/vms/evacuation.py) reports the obstacles of the VMs that the Job waits for, and the finder of
blockers (blockers/migrations.py) reports VMs that take too long. live_migration.py has Harvester's rule for the VMs
that the Job stops before.

KubeVirt (v1.5 to v1.7, evacuation controller) migrates an instance away from a node with the drain taint if its
eviction strategy requires it, its condition LiveMigratable is True, and none of its migrations is unfinished.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object

#: KubeVirt's label for the node of an instance.
NODE_LABEL = "kubevirt.io/nodeName"
#: Eviction strategies with which KubeVirt does not migrate a VM by itself; a user can migrate the VM.
_STAYS = frozenset({"None", "External"})


@dataclass(frozen=True, slots=True, kw_only=True)
class VMObstacle:
    """The reason for which an instance has not left its node yet."""

    why: str
    #: The remedies, each with its command; empty if KubeVirt has to act.
    ways_out: tuple[str, ...] = ()
    #: True if KubeVirt never moves the instance: only its user can.
    needs_user: bool = False
    #: True if KubeVirt's controller of migrations has to act next.
    needs_controller: bool = False


def vm_obstacle(instance: Object, migrations: Sequence[Object]) -> VMObstacle:
    """Return why the instance is still on its node; `migrations` are its migrations from the node, oldest first."""
    if objects.is_deleting(instance):
        way_out = f"If its system does not shut down: virtctl stop {_named(instance)} --force --grace-period=0"
        return VMObstacle(why="it is stopping", ways_out=(way_out,))
    active = [one for one in migrations if not is_final(one)]
    if active:
        return _migrating(instance, active[-1])
    return staying(instance) or VMObstacle(why=_last(migrations), ways_out=(_migrate(instance),), needs_controller=True)


def staying(instance: Object) -> VMObstacle | None:
    """Return why KubeVirt never moves the instance by itself; None if KubeVirt moves the instance."""
    movable = objects.condition(instance, "LiveMigratable")
    if objects.text(movable, "status") == "False":
        words = (objects.text(movable, "reason"), objects.excerpt(movable, "message"))
        why = f"KubeVirt cannot migrate it: {': '.join(filter(None, words)) or 'LiveMigratable is False'}"
        return VMObstacle(why=why, ways_out=(f"Stop the VM: {_stop(instance)}",), needs_user=True)
    strategy = objects.text(instance, "spec", "evictionStrategy")
    if strategy not in _STAYS:
        return None
    ways_out = (_migrate(instance), f"Or stop it: {_stop(instance)}")
    return VMObstacle(why=f"its eviction strategy is {strategy}", ways_out=ways_out, needs_user=True)


def _migrating(instance: Object, migration: Object) -> VMObstacle:
    named, phase = f"migration {objects.name(migration)}", objects.text(migration, "status", "phase")
    if not phase:
        return VMObstacle(why=f"{named} has not begun", needs_controller=True)
    return VMObstacle(why=f"{named} is {phase}", ways_out=(f"Stop the VM: {_stop(instance)}",))


def _last(migrations: Sequence[Object]) -> str:
    if not migrations:
        return "it has no migration"
    last = migrations[-1]
    why = objects.excerpt(last, "status", "migrationState", "failureReason")
    phase = objects.text(last, "status", "phase")
    return f"migration {objects.name(last)} is {phase}" + (f": {why}" if why else "")


def _migrate(instance: Object) -> str:
    return f"Migrate it: virtctl migrate {_named(instance)}"


def _stop(instance: Object) -> str:
    return f"virtctl stop {_named(instance)}"


def _named(instance: Object) -> str:
    return f"{objects.name(instance)} -n {objects.namespace(instance)}"
