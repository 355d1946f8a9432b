"""The net writes of a client: one line for each field, with its value before and after, and what caused the write.

No line has a time, a UID or a resourceVersion: runs at other times, and with other random numbers, give the same ones.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hack.apiserver.call import Call
from hack.faults.middleware import NoHook
from upgrade_manager.api.names import HISTORY_SUFFIX
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import Resource
from upgrade_manager.kube.transport import Response

#: Returns the name of what causes a write: of the object, and of its field.
Cause = Callable[[str, str], str]
#: A value that is not there.
ABSENT = "absent"
#: Kinds of which no write is listed: reports, and the locks of replicas.
_UNLISTED = re.compile(r"(?:events|leases|upgradeplans)(?:\.|$)")
#: Subresources that are parts of the object; others are requests.
_PARTS = ("", "status", "scale")
_METADATA = ("labels", "annotations")
_DONE = (200, 201, 202)
#: Values that differ from run to run.
_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b[0-9a-f]{56}\b"), "HASH"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
)
#: Characters of a value that are listed.
_LONGEST = 420


@dataclass(slots=True, kw_only=True)
class _Field:
    cause: str
    verb: str
    #: The value before the first write, and after each that changed it.
    values: list[str]


class NetWrites(NoHook):
    """A hook of the middleware: the writes that pass it, in the order of each field's first one."""

    def __init__(self, reader: Client, cause: Cause) -> None:
        self._reader = reader
        self._cause = cause
        self._before: dict[int, Object | None] = {}
        self._fields: dict[tuple[str, str], _Field] = {}

    async def before(self, number: int, call: Call) -> None:
        """See WriteHook."""
        if _is_listed(call) and call.verb != "create":
            self._before[number] = await self._read(call)

    async def after(self, number: int, call: Call, response: Response) -> None:
        """See WriteHook."""
        old = self._before.pop(number, None)
        if response.status not in _DONE or not _is_listed(call):
            return
        if call.verb == "delete":
            self.add(_named(old or {}), "", verb="delete", before="", after="")
        elif call.verb == "deletecollection":
            for one in json.loads(response.body)["items"]:
                self.add(_named({"kind": _kind(response), **one}), "", verb="delete", before="", after="")
        elif (old is None and call.verb != "create") or call.subresource not in _PARTS:
            self.add(f"{call.resource} {call.namespace}/{call.name}", call.subresource, verb="request", after="")
        else:
            self.compare(old, await self._written(call, response), verb=call.verb)

    def compare(self, old: Object | None, new: Object, *, verb: str) -> None:
        """Add the fields in which two states of an object differ."""
        self.compare_fields(_named(new), dict(_flat(old or {})), dict(_flat(new)), verb=verb)

    def compare_fields(self, name: str, old: dict[str, str], new: dict[str, str], *, verb: str) -> None:
        """Add the fields in which two states of something differ."""
        for field in dict.fromkeys((*old, *new)):
            before, after = old.get(field, ABSENT), new.get(field, ABSENT)
            if before != after:
                self.add(name, field, verb=verb, before=before, after=after)

    def add(self, name: str, field: str, *, verb: str, before: str = "", after: str) -> None:
        """Add one change; a plan's history has the times and uids of its run."""
        if name.startswith("ConfigMap ") and name.endswith(HISTORY_SUFFIX):
            return
        cause = self._cause(name, field)
        known = self._fields.setdefault((name, field), _Field(cause=cause, verb=verb, values=[before]))
        if known.cause.startswith(("step ", "phase ")) and not cause.startswith(("step ", "phase ")):
            known.cause = cause
        if known.values[-1] != after:
            known.values.append(after)

    def lines(self) -> list[str]:
        """Return the listing."""
        return [line for (name, field), one in self._fields.items() for line in _lines(name, field, one)]

    async def _read(self, call: Call) -> Object | None:
        plural, _, group = call.resource.partition(".")
        resource = Resource(group=group, version=call.version, plural=plural, kind="", namespaced=bool(call.namespace))
        try:
            return await self._reader.get(resource, call.name, namespace=call.namespace)
        except NotFound:
            return None

    async def _written(self, call: Call, response: Response) -> Object:
        """Return the object after the write: a client may ask for its metadata only."""
        body: Object = json.loads(response.body)
        is_whole = not str(body.get("kind") or "").startswith("PartialObjectMetadata")
        return body if is_whole else await self._read(call) or {}


def _is_listed(call: Call) -> bool:
    return _UNLISTED.match(call.resource) is None


def _kind(listing: Response) -> str:
    """Return the kind of a list's objects, which do not name it."""
    return str(json.loads(listing.body)["kind"]).removesuffix("List")


def _named(obj: Object) -> str:
    """`Setting.harvesterhci.io overcommit-config`, as kubectl names it."""
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    namespace = objects.namespace(obj)
    kind = f"{obj.get('kind')}.{group}" if group else f"{obj.get('kind')}"
    return f"{kind} {f'{namespace}/' if namespace else ''}{objects.name(obj)}"


def _flat(obj: Object) -> Iterator[tuple[str, str]]:
    """Yield the path and the value of each field, but of no bookkeeping."""
    metadata = objects.metadata(obj) if obj else {}
    for part in _METADATA:
        if metadata.get(part):
            yield from _leaves(f"metadata.{part}", metadata[part])
    for key, value in obj.items():
        if key not in {"apiVersion", "kind", "metadata"}:
            yield from _leaves(key, value)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    document = _document(value)
    if isinstance(document, dict):
        for key, one in document.items():
            yield from _leaves(f"{path}[{key}]" if re.search(r"[./]", key) else f"{path}.{key}", one)
    elif isinstance(document, list) and document and all(isinstance(one, dict) and one.get("name") for one in document):
        for one in document:
            yield from _leaves(f"{path}[{one['name']}]", {key: each for key, each in one.items() if key != "name"})
    elif path.endswith(".gz]"):
        yield path, text_of(gzip.decompress(base64.b64decode(value)).decode().split())
    else:
        yield path, text_of(document)


def _document(value: Any) -> Any:
    """Return the content of a JSON document that stands in a field, as in Fleet's configuration."""
    if isinstance(value, str) and value.startswith("{") and ("\n" in value or '": ' in value):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def text_of(value: Any) -> str:
    """Return a value as JSON, without what differs from run to run."""
    text = json.dumps(value, ensure_ascii=False)
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text


def column(cause: str) -> str:
    """Return the first column of a line."""
    return f"{cause:<36}"


def _lines(name: str, field: str, one: _Field) -> Iterator[str]:
    head = f"{column(one.cause)}{one.verb:<7} {name}"
    if not field or one.verb == "request":
        yield f"{head}{f': {field}' if field else ''}"
        return
    after = [_shortened(value) for value in one.values[1:]] or [one.values[0]]
    script = _script(one.values[-1])
    if script:
        for number, line in enumerate(script, start=1):
            yield f"{head}: {field}, line {number}: {line}"
    elif one.values[0] == one.values[-1]:
        yield f"{head}: {field} := {' then '.join(after)} (net: unchanged)"
    else:
        was = "" if one.values[0] == ABSENT else f" (was {_shortened(one.values[0])})"
        yield f"{head}: {field} := {' then '.join(after)}{was}"


def _script(value: str) -> list[str]:
    """Return the lines of a shell script, the last of an argument list; none for another value."""
    parsed = json.loads(value) if value != ABSENT and value[:1] == "[" else None
    text = parsed[-1] if parsed and isinstance(parsed[-1], str) else ""
    return text.splitlines() if "\n" in text else []


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}… ({len(value)} characters)"
