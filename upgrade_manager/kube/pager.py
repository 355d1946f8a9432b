"""Paged lists: selection, one page, all pages (client-go's ListPager)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from upgrade_manager.kube.errors import Gone

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

    Query: TypeAlias = tuple[tuple[str, str], ...]

#: Objects in a page, as in client-go.
PAGE_SIZE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects of a resource to list and watch, and the part of each that is returned."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    #: Only apiVersion, kind and metadata are read.
    metadata_only: bool = False

    @property
    def path(self) -> str:
        """The URL path of the collection."""
        return self.resource.path(namespace=self.namespace)

    def __str__(self) -> str:
        selectors = "&".join("=".join(parameter) for parameter in self.query())
        return f"{self.path}?{selectors}" if selectors else self.path

    def query(self) -> Query:
        """Return the selectors as query parameters."""
        return _non_empty(("labelSelector", self.label_selector), ("fieldSelector", self.field_selector))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The page to list, and its state."""

    #: "" reads the latest state, "0" any cached state, a number a state that is not older.
    resource_version: str = ""
    #: 0 lists everything at once.
    limit: int = PAGE_SIZE
    #: From the previous page; it excludes a resourceVersion.
    continue_token: str = ""

    def query(self) -> Query:
        """Return the query parameters."""
        version = "" if self.continue_token else self.resource_version
        limit = str(self.limit) if self.limit else ""
        return _non_empty(("resourceVersion", version), ("limit", limit), ("continue", self.continue_token))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectList:
    """One page of a list, or all of it."""

    items: list[Object]
    #: A watch can start here.
    resource_version: str
    #: Empty on the last page.
    continue_token: str = ""
    #: True if the server split the list into pages; one that reads from its watch cache does not.
    paginated: bool = False


#: Fetches one page; raises Gone when the resourceVersion or the token is too old.
FetchPage: TypeAlias = Callable[[ListOptions], Awaitable[ObjectList]]


async def list_all_pages(fetch: FetchPage, *, resource_version: str, limit: int = PAGE_SIZE) -> ObjectList:
    """Fetch all pages, at the resourceVersion of the first.

    When a continue token expires, all objects are listed in one page at the requested resourceVersion. Raises Gone only
    for the first page.
    """
    page = await fetch(ListOptions(resource_version=resource_version, limit=limit))
    first, items = page, page.items
    while page.continue_token:
        try:
            page = await fetch(ListOptions(limit=limit, continue_token=page.continue_token))
        except Gone:
            whole = await fetch(ListOptions(resource_version=resource_version, limit=0))
            return ObjectList(items=whole.items, resource_version=whole.resource_version, paginated=True)
        items = items + page.items
    return ObjectList(items=items, resource_version=first.resource_version, paginated=page is not first)


def _non_empty(*parameters: tuple[str, str]) -> Query:
    return tuple(parameter for parameter in parameters if parameter[1])
