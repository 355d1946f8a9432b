"""Installs CustomResourceDefinitions on a real API server, for `backend`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hack.apiserver.crds import CRDS
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_POLL_INTERVAL = 0.05
_TIMEOUT = 30.0


async def define(client: Client, crds: list[Object]) -> None:
    """Create the definitions that are missing, and wait until all are served. Raises TimeoutError."""
    # An API server validates a definition, which takes long, before it finds that it exists.
    there = {objects.name(crd) for crd in (await client.list(CRDS, metadata_only=True)).items}
    for crd in crds:
        if objects.name(crd) not in there:
            await client.create(CRDS, crd)
    async with asyncio.timeout(_TIMEOUT):
        for crd in crds:
            await _served(client, crd)


async def _served(client: Client, crd: Object) -> None:
    spec = crd["spec"]
    names = spec["names"]
    version = spec["versions"][0]["name"]
    resource = Resource(group=spec["group"], version=version, plural=names["plural"], kind=names["kind"])
    while True:
        try:
            await client.list(resource)
        except NotFound:
            await asyncio.sleep(_POLL_INTERVAL)
        else:
            return
