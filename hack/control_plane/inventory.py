"""Lists every kind that an API server serves, and every object."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_TIMEOUT = 10.0


async def kinds(client: Client) -> list[Resource]:
    """Return all kinds whose objects can be listed and deleted, each in its preferred version."""
    groups = (await _get(client, "/apis"))["groups"]
    found = []
    for group, version in [("", "v1"), *((one["name"], one["preferredVersion"]["version"]) for one in groups)]:
        listed = await _get(client, f"/apis/{group}/{version}" if group else f"/api/{version}")
        found += [
            Resource(group=group, version=version, plural=one["name"], kind=one["kind"], namespaced=one["namespaced"])
            for one in listed["resources"]
            if {"list", "delete"} <= set(one["verbs"])
        ]
    return found


async def inventory(client: Client) -> list[Object]:
    """Return every object of every kind, each once: Events are served in two groups."""
    found: dict[str, Object] = {}
    for resource in await kinds(client):
        # A definition may be deleted meanwhile.
        with suppress(NotFound):
            for obj in (await client.list(resource)).items:
                found.setdefault(objects.uid(obj), obj)
    return list(found.values())


async def _get(client: Client, path: str) -> Any:
    return json.loads((await client.raw("GET", path, timeout=_TIMEOUT)).body)
