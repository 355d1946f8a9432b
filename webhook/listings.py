"""The objects that the checks read, as narrow as the API's selectors allow, without fields that no check needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube.resources import NODES as NODES_RESOURCE
from upgrade_manager.kube.resources import VERSIONS
from webhook import fields
from webhook.cluster import Listing

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


def _metadata(obj: Object, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in fields.mapping(obj, "metadata").items() if key in {"name", "namespace", *keys}}


def _node(node: Object) -> Object:
    return {
        "metadata": _metadata(node, "labels", "annotations"),
        "spec": {"unschedulable": fields.is_true(node, "spec", "unschedulable")},
        "status": {"conditions": [fields.condition(node, "Ready")]},
    }


NODES = Listing(resource=NODES_RESOURCE, slim=_node)


def version(name: str) -> Listing:
    """Select a Version by name; one that does not exist is an empty list."""
    return Listing(
        resource=VERSIONS,
        namespace=HARVESTER_SYSTEM,
        field_selector=f"metadata.name={name}",
        metadata_only=True,
        slim=_metadata,
    )
