"""Objects and definitions for rows of the conformance table."""

from __future__ import annotations

from typing import Any

from tests.support.apiserver import definition
from tests.support.conformance_rows import delete, post
from tests.support.shapes import WIDGETS, widget

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
WIDGET = f"{WIDGETS}/one"
ONE = (post(MAPS, {"metadata": {"name": "one"}}),)
HELD = (post(MAPS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}}),)
DYING = (*HELD, delete(MAP))
CUSTOM = (post(WIDGETS, widget()),)
CUSTOM_HELD = (post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["a.io/b"]}}),)
#: Parts of a response that show whether an object is deleted or terminating.
PLACED = (
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.finalizers",
    "metadata.generation",
    "kind",
    "status",
    "details",
)
#: The path segment of the definition of Gadgets.
NAME = "gadgets.$word.example.io"
#: A schema without properties.
OPEN = {"type": "object"}


def config_map(**metadata: object) -> dict[str, object]:
    """Return a ConfigMap with that metadata."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def gadget(schema: dict[str, Any] = OPEN, **spec: Any) -> dict[str, Any]:
    """Return a CustomResourceDefinition of Gadgets with that schema and these fields of its spec."""
    whole = definition("gadgets", "Gadget", schema, group="$word.example.io")
    return whole | {"spec": whole["spec"] | spec}
