"""The CustomResourceDefinition of a kind Gadget, right or wrong, for rows of the conformance table."""

from __future__ import annotations

from typing import Any

from tests.support.api_calls import invalid
from tests.support.shapes import definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#: In paths.
NAME = "gadgets.$word.example.io"
#: A schema that has nothing.
OPEN = {"type": "object"}


def gadget(schema: dict[str, Any] = OPEN, **spec: Any) -> dict[str, Any]:
    """The definition with that schema, and with these members of its spec."""
    whole = definition("gadgets", "Gadget", schema, group="$word.example.io")
    return whole | {"spec": whole["spec"] | spec}


def unfit(*causes: tuple[str, ...]) -> dict[str, Any]:
    """The refusal of the definition."""
    return invalid("CustomResourceDefinition.apiextensions.k8s.io", *causes, name="gadgets.$ns.example.io")
