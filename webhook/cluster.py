"""What the checks read of a cluster."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003  # a dataclass field
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.pager import ListOptions, Selection, list_all_pages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import ObjectList


#: Objects in a page. Each page waits for the API server, and is decoded piece by piece.
PAGE_SIZE = 2500


class NotInstalled(Exception):
    """The cluster does not serve this kind; the text is its name, as in `volumes.longhorn.io`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Selection):
    """Objects that a check reads, and the fields of each that it needs."""

    #: Returns the object without the fields that are not needed, so that ten thousand of them are small.
    slim: Callable[[Object], Object]


class ClusterReader(Protocol):
    """Reads the cluster for the checks of one review."""

    async def list(self, listing: Listing) -> Sequence[Object]:
        """Return the objects. Raises NotInstalled and KubeError."""
        ...


class LiveReader:
    """Reads the latest state, page by page."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self, listing: Listing) -> Sequence[Object]:
        """See ClusterReader."""
        resource = listing.resource
        for version in resource.versions or (resource.version,):
            served = replace(listing, resource=replace(resource, version=version))
            try:
                found = await list_all_pages(partial(self._page, served), resource_version="", limit=PAGE_SIZE)
            except NotFound:
                continue
            return found.items
        raise NotInstalled(resource.name)

    async def _page(self, listing: Listing, options: ListOptions) -> ObjectList:
        return await self._client.list_page(listing, options, transform=listing.slim)
