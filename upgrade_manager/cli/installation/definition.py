"""Checks the CustomResourceDefinition against the API of this program; catalogue.py lists it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.crd import PLURAL, crd_manifest
from upgrade_manager.api.keys import GROUP, VERSION
from upgrade_manager.api.text import name_list
from upgrade_manager.cli.installation.row import Row, failed, passed
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import CUSTOM_RESOURCE_DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from upgrade_manager.cli.installation.cluster import Cluster
    from upgrade_manager.kube.objects import Object

NAME = f"{PLURAL}.{GROUP}"
_CHECK = "CustomResourceDefinition"
_APPLY = "kubectl apply -k deploy/crds"


async def check_definition(cluster: Cluster) -> Row:
    """Check that the cluster serves the version and all fields that this program knows."""
    definition = await cluster.client.find(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    if definition is None:
        return failed(_CHECK, f"{NAME} does not exist.", _APPLY)
    if objects.text(objects.condition(definition, "Established"), "status") != "True":
        return failed(_CHECK, f"{NAME} is not established.", f"kubectl describe crd {NAME}")
    schema = _schema(definition)
    if schema is None:
        return failed(_CHECK, f"{NAME} does not serve {VERSION}.", _APPLY)
    known = {*fields(_schema(crd_manifest()) or {})}
    served = {*fields(schema)}
    if missing := sorted(known - served):
        return failed(
            _CHECK, f"It is older than this program {cluster.version}: it lacks {name_list(missing)}.", _APPLY
        )
    if more := sorted(served - known):
        return passed(
            _CHECK, f"It is newer than this program {cluster.version}, which does not know {name_list(more)}."
        )
    return passed(_CHECK, f"It has all fields of version {cluster.version}.")


def _schema(definition: Object) -> Mapping[str, Any] | None:
    """Return the schema of our version; None if the version is not served."""
    for version in objects.items(definition, "spec", "versions"):
        if objects.text(version, "name") == VERSION and objects.is_true(version, "served"):
            return objects.mapping(version, "schema", "openAPIV3Schema")
    return None


def fields(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of all fields."""
    for name, child in objects.mapping(schema, "properties").items():
        field = f"{path}.{name}" if path else name
        yield field
        if isinstance(child, dict):
            yield from fields(child, field)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if child := objects.mapping(schema, key):
            yield from fields(child, path + mark)
