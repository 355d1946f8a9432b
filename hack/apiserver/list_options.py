"""The parameters of list and watch requests, and their valid combinations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.route import flag
from hack.apiserver.schema.field_error import UNOFFERED, forbidden
from hack.apiserver.selectors import Selector, parse_fields, parse_labels
from hack.apiserver.status import bad_request, invalid_options, not_a_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.resources import Row
    from hack.apiserver.schema.field_error import FieldError
    from upgrade_manager.kube.transport import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list or watch."""

    selector: Selector
    watch: bool
    limit: int
    continue_token: str
    #: As sent; empty and "0" mean different things.
    resource_version: str
    allow_bookmarks: bool
    timeout_seconds: int

    @property
    def revision(self) -> int:
        """Return the resourceVersion as a number; 0 when it is empty. Raises StatusError 400."""
        text = self.resource_version
        if text and not text.isdigit():
            raise bad_request(f"invalid resource version: {not_a_version(text)}")
        return int(text or 0)


def list_options(request: Request, row: Row) -> ListOptions:
    """Parse and validate the options. Raises StatusError 400 or 422."""
    query = dict(request.query)
    options = ListOptions(
        selector=Selector(
            labels=parse_labels(query.get("labelSelector", "")),
            fields=parse_fields(query.get("fieldSelector", ""), row),
        ),
        watch=flag(request, "watch"),
        limit=_number(query, "limit"),
        continue_token=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        allow_bookmarks=flag(request, "allowWatchBookmarks"),
        timeout_seconds=_number(query, "timeoutSeconds"),
    )
    errors = list(_errors(query, watch=options.watch))
    if errors:
        raise invalid_options("ListOptions", errors)
    return options


def _number(query: dict[str, str], name: str) -> int:
    text = query.get(name) or "0"
    try:
        return max(int(text), 0)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error


def _errors(query: dict[str, str], *, watch: bool) -> Iterator[FieldError]:
    """Yield an error for each option that is not offered; streaming lists as with the feature gate WatchList off."""
    if "sendInitialEvents" in query:
        gate = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        yield forbidden("sendInitialEvents", gate if watch else "sendInitialEvents is forbidden for list")
    elif query.get("resourceVersionMatch"):
        yield forbidden("resourceVersionMatch", UNOFFERED)
    if not watch and query.get("limit") and query.get("resourceVersion", "0") not in {"", "0"}:
        yield forbidden("limit", f"a page of an old resourceVersion is {UNOFFERED}")
