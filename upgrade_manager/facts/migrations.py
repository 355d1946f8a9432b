"""KubeVirt's migrations of a VM, for the pre-drain Job and for the finder of VMs that stay on the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.kube.objects import Object

#: KubeVirt's label for the node to which an instance migrates.
TARGET_LABEL = "kubevirt.io/migrationTargetNodeName"


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
