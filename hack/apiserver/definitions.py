"""Checks of a kind's CustomResourceDefinition at writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.status import StatusError, about
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from hack.apiserver.resources import Row
    from hack.apiserver.storage import Storage

DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)


def check_definition(storage: Storage, row: Row) -> None:
    """Refuse creations of a kind whose definition is being deleted. Raises StatusError 405."""
    found = storage.get(DEFINITIONS.name, ("", row.storage)) if row.custom else None
    if found is None or "deletionTimestamp" not in found.object["metadata"]:
        return
    message = "create not allowed while custom resource definition is terminating"
    raise StatusError(code=405, reason="MethodNotAllowed", message=message, details=about(row.resource, ""))
