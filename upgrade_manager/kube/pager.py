"""Lists: one page as the server sends it, and all pages as callers want them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from upgrade_manager.kube.errors import Gone

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: Objects a page, as client-go's.
PAGE_SIZE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind, and how much of each."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    #: Only apiVersion, kind and metadata are read.
    metadata_only: bool = False

    def query(self) -> tuple[tuple[str, str], ...]:
        """The selectors as query parameters."""
        pairs = (("labelSelector", self.label_selector), ("fieldSelector", self.field_selector))
        return tuple(pair for pair in pairs if pair[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """What of a list to send: either a resourceVersion or the token of the page before, never both."""

    #: "" reads the newest state, "0" any cached one, a number one not older.
    resource_version: str = ""
    #: 0 asks for everything at once.
    limit: int = PAGE_SIZE
    continue_token: str = ""

    def query(self) -> tuple[tuple[str, str], ...]:
        """The query parameters, without empty ones."""
        version = "" if self.continue_token else self.resource_version
        limit = str(self.limit) if self.limit else ""
        pairs = (("resourceVersion", version), ("limit", limit), ("continue", self.continue_token))
        return tuple(pair for pair in pairs if pair[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer to a list."""

    items: list[Object]
    resource_version: str
    #: Empty on the last page.
    continue_token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All objects of a selection at one resourceVersion, which is where a watch can start."""

    items: list[Object]
    resource_version: str
    #: Whether the server cut it into pages, which one that answers from its watch cache does not.
    paginated: bool = False


class PageSource(Protocol):
    """Fetches one page."""

    async def __call__(self, query: PageQuery) -> Page:
        """Raises kube.errors; Gone when the resourceVersion or the token is too old."""
        ...


async def read_pages(fetch: PageSource, *, resource_version: str, limit: int = PAGE_SIZE) -> Listing:
    """All pages, at the first one's resourceVersion.

    A token that expires between two pages turns it into one unpaged list at the resourceVersion asked for
    (client-go, tools/pager); only when the first page is refused does Gone reach the caller.
    """
    page = await fetch(PageQuery(resource_version=resource_version, limit=limit))
    first, items = page, page.items
    while page.continue_token:
        try:
            page = await fetch(PageQuery(limit=limit, continue_token=page.continue_token))
        except Gone:
            whole = await fetch(PageQuery(resource_version=resource_version, limit=0))
            return Listing(items=whole.items, resource_version=whole.resource_version, paginated=True)
        items = items + page.items
    return Listing(items=items, resource_version=first.resource_version, paginated=page is not first)
