"""The objects of the cluster that checks read."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003  # a dataclass field
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.pager import ListOptions, Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object


class NotInstalled(Exception):
    """The cluster does not serve this kind; the text is the kind's name, as in `volumes.longhorn.io`."""


#: The placeholder for each object of a page.
_TAKEN: Object = {}


def _always(_: Object) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Selection):
    """Objects that a check reads, and the fields of each that it needs."""

    #: Returns the object without unneeded fields, so that ten thousand objects take little memory.
    slim: Callable[[Object], Object]
    #: Returns False for a slim object that is left out.
    is_needed: Callable[[Object], bool] = _always


class ClusterReader(Protocol):
    """Reads the cluster for the checks of one review."""

    async def list(self, listing: Listing) -> Sequence[Object]:
        """Return the objects. Raises NotInstalled and KubeError."""
        ...


class LiveReader:
    """Reads the latest state.

    Lists are not paged: kube-apiserver serves whole lists from its watch cache, and reads pages from etcd at five times
    the cost. Objects are decoded and made slim as they arrive.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self, listing: Listing) -> Sequence[Object]:
        """See ClusterReader."""
        resource = listing.resource
        for version in resource.versions or (resource.version,):
            served = replace(listing, resource=replace(resource, version=version))
            found: list[Object] = []
            try:
                await self._client.list_page(served, ListOptions(limit=0), transform=partial(_take, listing, found))
            except NotFound:
                continue
            return found
        raise NotInstalled(resource.name)


def _take(listing: Listing, found: list[Object], obj: Object) -> Object:
    """Keep the object in the result if it is needed; the page itself keeps no objects."""
    slim = listing.slim(obj)
    if listing.is_needed(slim):
        found.append(slim)
    return _TAKEN
