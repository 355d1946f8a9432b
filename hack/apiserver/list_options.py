"""The parameters of list and watch requests, and their valid combinations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.field_selector import parse_fields
from hack.apiserver.label_selector import parse_labels
from hack.apiserver.options import invalid_options
from hack.apiserver.route import flag
from hack.apiserver.schema.field_error import forbidden, not_supported
from hack.apiserver.selectors import Selector
from hack.apiserver.status import bad_request, not_a_version

if TYPE_CHECKING:
    from hack.apiserver.resources import Row
    from hack.apiserver.schema.field_error import FieldError
    from upgrade_manager.kube.transport import Request

_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list or watch."""

    selector: Selector
    watch: bool
    limit: int
    continue_token: str
    #: As sent; empty and "0" mean different things.
    resource_version: str
    #: Exact, NotOlderThan or empty.
    match: str
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
        match=query.get("resourceVersionMatch", ""),
        allow_bookmarks=flag(request, "allowWatchBookmarks"),
        timeout_seconds=_number(query, "timeoutSeconds"),
    )
    errors = _watch_errors(options, query) if options.watch else _list_errors(options, query)
    if errors:
        raise invalid_options("ListOptions", errors)
    return options


def _number(query: dict[str, str], name: str) -> int:
    text = query.get(name) or "0"
    try:
        return max(int(text), 0)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error


def _list_errors(options: ListOptions, query: dict[str, str]) -> list[FieldError]:
    field = "resourceVersionMatch"
    errors: list[FieldError] = []
    if options.match and not options.resource_version:
        errors.append(forbidden(field, f"{field} is forbidden unless resourceVersion is provided"))
    if options.match and options.continue_token:
        errors.append(forbidden(field, f"{field} is forbidden when continue is provided"))
    if options.match not in {"", _EXACT, _NOT_OLDER}:
        errors.append(not_supported(field, options.match, (_EXACT, _NOT_OLDER, "")))
    if options.match == "Exact" and options.resource_version == "0":
        errors.append(forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in query:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions, query: dict[str, str]) -> list[FieldError]:
    """Return errors of watch options; sendInitialEvents is refused as with the feature gate WatchList off."""
    field, initial = "resourceVersionMatch", "sendInitialEvents"
    errors: list[FieldError] = []
    if initial in query:
        if options.match != _NOT_OLDER:
            errors.append(forbidden(field, f"{initial} requires setting {field} to NotOlderThan"))
        gate = f"{initial} is forbidden for watch unless the WatchList feature gate is enabled"
        errors.append(forbidden(initial, gate))
    elif options.match:
        errors.append(forbidden(field, f"{field} is forbidden for watch unless {initial} is provided"))
    if options.match not in {"", _NOT_OLDER}:
        errors.append(not_supported(field, options.match, (_NOT_OLDER,)))
    if options.match and options.continue_token:
        errors.append(forbidden(field, f"{field} is forbidden when continue is provided"))
    return errors
