"""What is stored in an API server: every kind that it serves, and every object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_TIMEOUT = 10.0


async def kinds(client: Client) -> list[Resource]:
    """All kinds whose objects can be listed and deleted, each in its preferred version."""
    versions = [("", "v1")]
    versions += [
        (group["name"], group["preferredVersion"]["version"]) for group in (await _document(client, "/apis"))["groups"]
    ]
    found = []
    for group, version in versions:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        listed = (await _document(client, path))["resources"]
        found += [
            Resource(
                group=group,
                version=version,
                plural=one["name"],
                kind=one["kind"],
                namespaced=one["namespaced"],
            )
            for one in listed
            if {"list", "delete"} <= set(one["verbs"])
        ]
    return found


async def inventory(client: Client) -> list[Object]:
    """Every object of every kind, each once: Events are served in two groups."""
    found: dict[str, Object] = {}
    for resource in await kinds(client):
        try:
            listing = await client.list(resource)
        except NotFound:
            # Its definition went in the meantime.
            continue
        for obj in listing.items:
            found.setdefault(objects.uid(obj), obj)
    return list(found.values())


async def _document(client: Client, path: str) -> Any:
    return json.loads((await client.raw("GET", path, timeout=_TIMEOUT)).body)
