"""Rules for Events, which differ between the two APIs and between the two ways to date an Event.

After the validation of Events in kube-apiserver 1.35: an Event without eventTime is of the old kind and hardly judged,
one with it must say who reports what; through events.k8s.io only such ones are created, and only their series changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import FieldError, invalid, required
from hack.apiserver.schema.names import qualified_name

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

#: Characters that a field of a new Event may have.
_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128}
_TEXT = 1024
_TYPES = ("Normal", "Warning")
_IMMUTABLE = "field is immutable"
#: Fields of the new API that never change, `series` being the one that does.
_FIXED = ("eventTime", "reportingController", "reportingInstance", "action", "reason", "regarding", "note", "type")
_DEPRECATED = ("deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount")


def event(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about an Event of core/v1."""
    _ = old
    about, home = _places(new, "involvedObject")
    if not new.get("eventTime"):
        if home not in ({about} if about else {"default", ""}):
            yield _misplaced(about)
        return
    if not about and home not in {"default", "kube-system"}:
        yield _misplaced(about)
    yield from _reported(new, "reportingComponent", "message")


def new_event(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about an Event of events.k8s.io/v1."""
    if old is not None:
        for field in _FIXED:
            if new.get(field) != old.get(field):
                yield invalid(field, new.get(field), _IMMUTABLE)
        return
    if not new.get("eventTime"):
        yield required("eventTime")
    about, home = _places(new, "regarding")
    if not about and home not in {"default", "kube-system"}:
        yield _misplaced(about)
    if new.get("eventTime"):
        yield from _reported(new, "reportingController", "note")
    if new.get("type") not in _TYPES:
        yield invalid("type", "", "has invalid value: " + str(new.get("type") or ""))
    for field in _DEPRECATED:
        if new.get(field):
            yield invalid(field, "", "needs to be unset")


def _places(new: Object, subject: str) -> tuple[str, str]:
    """The namespaces of what an Event is about, and of the Event."""
    return (new.get(subject) or {}).get("namespace") or "", new["metadata"].get("namespace") or ""


def _misplaced(about: str) -> FieldError:
    return invalid("involvedObject.namespace", about, "does not match event.namespace")


def _reported(new: Object, reporter: str, text: str) -> Iterator[FieldError]:
    """Who reports, what was done and why: needed of every Event with an eventTime."""
    name = new.get(reporter) or ""
    if not name:
        yield required(reporter)
    for fault in qualified_name(name):
        yield invalid(reporter, name, fault)
    for field, limit in _LIMITS.items():
        value = new.get(field) or ""
        if not value:
            yield required(field)
        elif len(value) > limit:
            yield invalid(field, "", f"can have at most {limit} characters")
    if len(new.get(text) or "") > _TEXT:
        yield invalid(text, "", f"can have at most {_TEXT} characters")
