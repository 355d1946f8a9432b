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
ROBOTS = f"/apis/{GROUP}/v1/robots"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCHEMA = {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}


def definition(plural: str, kind: str, *, namespaced: bool, status: bool) -> dict[str, Any]:
    """Return a definition with one version and an open schema."""
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _SCHEMA},
    }
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


#: Namespaced, with a status subresource.
WIDGET = definition("widgets", "Widget", namespaced=True, status=True)
#: Cluster-scoped, without one.
ROBOT = definition("robots", "Robot", namespaced=False, status=False)


def widget(name: str, **spec: Any) -> dict[str, Any]:
    """Return a Widget."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def robot(name: str, **more: Any) -> dict[str, Any]:
    """Return a Robot."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Robot", "metadata": {"name": name}} | more
