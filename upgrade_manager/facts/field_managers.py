"""The client that last wrote a field, by the object's managedFields.

pipeline/settings/rancher.py names the client that has changed what the manager set, toolkit/vms/drain_taint.py the one
that has removed its taint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


def last_manager(obj: Object, *path: str, besides: str = "") -> str:
    """Return the field manager that owns the field, the newest of several but for one; empty if none does.

    The name is the client's own claim, by default the first part of its user agent.
    """
    members = [f"f:{name}" for name in path]
    owners = [
        one
        for one in objects.items(obj, "metadata", "managedFields")
        if objects.value(one, "fieldsV1", *members) is not None and objects.text(one, "manager") != besides
    ]
    newest = max(owners, key=lambda one: objects.text(one, "time"), default=None)
    return objects.excerpt(newest, "manager")
