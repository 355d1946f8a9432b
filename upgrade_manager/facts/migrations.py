"""KubeVirt's migrations of a VM, for the pre-drain Job and for the finder of VMs that stay on the node.

toolkit/vms/evacuation.py is the Job, blockers/migrations.py the finder; vm_obstacles.py names a VM's obstacle.

KubeVirt (v1.2 to v1.7, pkg/virt-config/virt-config.go) limits parallel migrations, and lets a migration take
completionTimeoutPerGiB seconds for each GiB of the VM's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.quantities import read_quantity
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from upgrade_manager.kube.objects import Object

#: KubeVirt's label for the node to which an instance migrates.
TARGET_LABEL = "kubevirt.io/migrationTargetNodeName"
#: The time that every migration may take.
LEAST = timedelta(minutes=10)
#: The time in which KubeVirt gives a new migration its first phase.
_NEW = timedelta(minutes=1)
#: The phases of a migration that waits for others.
_WAITS = frozenset({"", "Pending"})
_GIB = 1024**3
#: The fields with an instance's memory, the first one that is set counts.
_MEMORY = (
    ("status", "memory", "guestCurrent"),
    ("spec", "domain", "memory", "guest"),
    ("spec", "domain", "resources", "requests", "memory"),
    ("spec", "domain", "resources", "limits", "memory"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationLimits:
    """KubeVirt's limits of migrations, with its defaults."""

    #: Seconds for each GiB of memory.
    per_gib: int = 150
    #: Migrations in the cluster at the same time.
    in_cluster: int = 5
    #: Migrations from one node at the same time.
    from_node: int = 2

    @classmethod
    def of(cls, kubevirt: Object | None) -> MigrationLimits:
        """Read the KubeVirt object, which may be unknown."""
        found = objects.mapping(kubevirt, "spec", "configuration", "migrations")
        default = cls()
        return cls(
            per_gib=objects.number(found, "completionTimeoutPerGiB") or default.per_gib,
            in_cluster=objects.number(found, "parallelMigrationsPerCluster") or default.in_cluster,
            from_node=objects.number(found, "parallelOutboundMigrationsPerNode") or default.from_node,
        )


def has_begun(migration: Object) -> bool:
    """Return True for an unfinished migration that does not wait for others."""
    return not is_final(migration) and objects.text(migration, "status", "phase") not in _WAITS


def is_beginning(migrations: Sequence[Object], now: datetime) -> bool:
    """Return True for a VM whose only migration was created a short while ago, and has not begun."""
    if len(migrations) != 1 or is_final(migrations[0]) or has_begun(migrations[0]):
        return False
    created = parse_time(objects.text(migrations[0], "metadata", "creationTimestamp"))
    is_new = not objects.text(migrations[0], "status", "phase")
    return created is not None and now - created < (_NEW if is_new else LEAST)


def others_move(
    own: Sequence[Sequence[Object]], labelled: Iterable[Object], *, limits: MigrationLimits, now: datetime
) -> list[bool]:
    """Return for each VM of a node, by its migrations since its arrival, if KubeVirt migrates other VMs first.

    These are other VMs of the node, or as many VMs of the cluster as KubeVirt migrates at the same time: `labelled` are
    the instances with TARGET_LABEL. A VM without an unfinished migration also waits for those that KubeVirt has created
    and that fail again and again, as many as it creates for a node.
    """
    moves = [any(map(has_begun, each)) or is_beginning(each, now) for each in own]
    is_full = sum(map(moves_to_another_node, labelled)) >= limits.in_cluster
    created = [not all(map(is_final, each)) for each in own]
    is_used_up = sum(created) >= limits.from_node
    return [
        is_full or sum(moves) > moving or (is_used_up and not is_created)
        for moving, is_created in zip(moves, created, strict=True)
    ]


def is_slow(instance: Object, migration: Object, *, limits: MigrationLimits, now: datetime) -> bool:
    """Return True for a migration that has begun and takes longer than KubeVirt lets it take, and than LEAST."""
    times = (
        objects.text(migration, "status", "migrationState", "startTimestamp"),
        objects.text(migration, "metadata", "creationTimestamp"),
    )
    began = next((time for text in times if (time := parse_time(text)) is not None), None)
    return began is None or now - began >= completion_time(instance, limits)


def completion_time(instance: Object, limits: MigrationLimits) -> timedelta:
    """Return the time that a migration of the instance may take."""
    texts = (objects.text(instance, *path) for path in _MEMORY)
    memory = next((found for text in texts if (found := read_quantity(text))), 0.0)
    return max(LEAST, timedelta(seconds=limits.per_gib * memory / _GIB))


def moves_to_another_node(instance: Object) -> bool:
    """Return True while KubeVirt migrates the instance, which has TARGET_LABEL."""
    state = objects.mapping(instance, "status", "migrationState")
    return not (objects.is_true(state, "completed") or objects.is_true(state, "failed"))


def migrations_of(instance: Object, migrations: Iterable[Object]) -> list[Object]:
    """Return the migrations of this instance, oldest first, without those of an earlier instance of its name."""
    created = objects.text(instance, "metadata", "creationTimestamp")
    own = [
        one
        for one in migrations
        if objects.text(one, "spec", "vmiName") == objects.name(instance)
        and objects.text(one, "metadata", "namespace") == objects.text(instance, "metadata", "namespace")
        and objects.text(one, "metadata", "creationTimestamp") >= created
    ]
    return sorted(own, key=lambda one: (objects.text(one, "metadata", "creationTimestamp"), objects.name(one)))


def since_arrival(migrations: Sequence[Object]) -> Sequence[Object]:
    """Return the migrations after the last one that succeeded: it has brought the VM to this node."""
    arrived = max(
        (number for number, one in enumerate(migrations, 1) if objects.text(one, "status", "phase") == "Succeeded"),
        default=0,
    )
    return migrations[arrived:]
