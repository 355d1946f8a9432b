"""KubeVirt's migrations of a VM, for the pre-drain Job and for the blocker of a drain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object

#: Final phases of a migration.
ENDED = frozenset({"Succeeded", "Failed"})
#: Eviction strategies with which KubeVirt does not migrate a VM.
STAYS = frozenset({"None", "External"})


def migrations_of(instance: Object, migrations: Iterable[Object]) -> list[Object]:
    """Return the migrations of this instance, oldest first; not those of an earlier one of its name."""
    created = fields.text(instance, "metadata", "creationTimestamp")
    own = [
        one
        for one in migrations
        if fields.text(one, "spec", "vmiName") == fields.name(instance)
        and fields.text(one, "metadata", "namespace") == fields.text(instance, "metadata", "namespace")
        and fields.text(one, "metadata", "creationTimestamp") >= created
    ]
    return sorted(own, key=lambda one: (fields.text(one, "metadata", "creationTimestamp"), fields.name(one)))
