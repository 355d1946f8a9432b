"""The embedded API server, and CustomResourceDefinitions for its tests."""

from __future__ import annotations

from random import Random
from typing import Any

from hack.apiserver.posting import NoPoster, Poster
from hack.apiserver.server import ApiServer
from hack.virtual_time import virtual_now


def make_server(seed: int = 1, *, poster: Poster | None = None) -> ApiServer:
    """Return an empty server; call it while a loop runs."""
    return ApiServer(now=virtual_now, random=Random(seed), poster=poster or NoPoster())


GROUP = "example.io"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCHEMA = {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}


def definition(
    plural: str,
    kind: str,
    schema: dict[str, Any] = _SCHEMA,
    *,
    group: str = GROUP,
    status: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Return a definition with one version, an open schema by default; `more` are fields of the version."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}} | more
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version | ({"subresources": {"status": {}}} if status else {})],
        },
    }


#: Namespaced, with a status subresource.
WIDGET = definition("widgets", "Widget", status=True)


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
