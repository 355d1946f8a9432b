"""Reads what a bundle has; what the user may not read is listed with the reason, and stops nothing.

bundle.py calls it.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from upgrade_manager import __version__
from upgrade_manager.cli.bundles import contents
from upgrade_manager.cli.bundles.archive import FORMAT, HISTORY, LEASE, LOGS, MANIFEST, bounded
from upgrade_manager.cli.bundles.redaction import redacted_object, redacted_text
from upgrade_manager.cli.lease_watch import LeaseWatch
from upgrade_manager.cli.plans import read_history
from upgrade_manager.facts.pod_reason import container_statuses
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from upgrade_manager.cli.session import Session
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection

LAST_WORDS = "last-words.txt"
#: Requests at a time, and seconds for each.
_CONCURRENT, _TIMEOUT = 8, 30.0
#: Bytes of one list, lines of one log, and Pods whose logs are read: the newest, and first those that failed.
_MAX_LIST, _MAX_LINES, MAX_PODS = 8_000_000, 20_000, 200


@dataclass(slots=True, kw_only=True)
class Collection:
    """The files and refusals so far."""

    session: Session
    #: The files, by path.
    files: dict[str, bytes] = field(default_factory=dict)
    #: The files that could not be read, or not as a whole, with the reason.
    unread: dict[str, str] = field(default_factory=dict)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CONCURRENT))

    async def list(self, selection: Selection, path: str) -> list[Object]:
        """Return the selected objects, without secrets; none if they cannot be read."""
        try:
            async with self._turns, asyncio.timeout(_TIMEOUT):
                found = await self.session.client.list(
                    selection.resource,
                    namespace=selection.namespace,
                    label_selector=selection.label_selector,
                    field_selector=selection.field_selector,
                    metadata_only=selection.metadata_only,
                )
        except (KubeError, TimeoutError) as error:
            self.unread[path] = str(error) or "no response"
            return []
        return [redacted_object(one) for one in found.items]

    async def log(self, pod: Object, container: str, *, previous: bool) -> None:
        """Read the end of a container's log."""
        namespace, name = objects.key(pod)
        path = f"{LOGS}{namespace}/{name}/{container}{'-previous' if previous else ''}.log"
        query = [("container", container), ("tailLines", str(_MAX_LINES)), ("timestamps", "true")]
        place = PODS.path(name, namespace=namespace, subresource="log")
        try:
            async with self._turns, asyncio.timeout(_TIMEOUT):
                response = await self.session.client.raw(
                    "GET", place, query=(*query, *([("previous", "true")] if previous else [])), accept="*/*"
                )
        except (KubeError, TimeoutError) as error:
            self.unread[path] = str(error) or "no response"
            return
        self.files[path] = redacted_text(response.body.decode(errors="replace")).encode()

    def add(self, path: str, found: Iterable[Object]) -> None:
        """Add a file with objects, as many as fit."""
        kept: list[bytes] = []
        size, left_out = 0, 0
        for one in found:
            text = json.dumps(one, ensure_ascii=False, indent=1).encode(errors="replace")
            size += len(text)
            if size <= _MAX_LIST:
                kept.append(text)
            else:
                left_out += 1
        self.files[path] = b"[\n" + b",\n".join(kept) + b"\n]\n"
        if left_out:
            self.unread[path] = f"{left_out} objects are left out: the file would be larger than {_MAX_LIST} bytes"


async def collect(session: Session, plan: Object, plans: Sequence[Object]) -> dict[str, bytes]:
    """Return the files of the plan's bundle, by path."""
    now = session.now()
    found = Collection(session=session)
    found.add(contents.PLANS, map(redacted_object, plans))
    lease = LeaseWatch(session.client, now=lambda: now)
    pods, (history, refusal), _ = await asyncio.gather(_objects(found, plan), read_history(session, plan), lease.read())
    found.files[HISTORY] = _json({key: redacted_text(str(text)) for key, text in history.items()})
    if refusal:
        found.unread[HISTORY] = refusal
    reading = lease.reading
    found.files[LEASE] = _json(
        {"lease": redacted_object(reading.lease) if reading.lease else {}, "error": reading.error}
    )
    await _logs(found, pods)
    files, cut = bounded(found.files)
    about = {
        "format": FORMAT,
        "plan": objects.name(plan),
        "uid": objects.text(plan, "metadata", "uid"),
        "time": now.isoformat(),
        "version": __version__,
        "cut": cut,
        "unread": found.unread,
        "files": {path: len(content) for path, content in files.items()},
    }
    return {**files, MANIFEST: _json(about)}


async def _objects(found: Collection, plan: Object) -> list[Object]:
    """Add the objects; return the Pods."""
    parts = [*contents.parts(plan)]
    lists = await asyncio.gather(*(found.list(one.selection, one.path) for one in parts))
    for part, items in zip(parts, lists, strict=True):
        if items:
            found.add(part.path, items)
    return [pod for part, items in zip(parts, lists, strict=True) if part.path in contents.PODS for pod in items]


async def _logs(found: Collection, pods: Sequence[Object]) -> None:
    chosen = _chosen(pods)
    if len(chosen) < len(pods):
        found.unread[LOGS] = f"logs of {len(pods) - len(chosen)} Pods are left out: there are more than {MAX_PODS}"
    found.files[LAST_WORDS] = "".join(f"{line}\n" for pod in chosen for line in _last_words(pod)).encode()
    await asyncio.gather(*(found.log(pod, name, previous=past) for pod in chosen for name, past in _containers(pod)))


def _chosen(pods: Sequence[Object]) -> list[Object]:
    """Return the Pods whose logs are read: failed ones first, then the newest ones."""
    newest = sorted(pods, key=lambda pod: objects.text(pod, "metadata", "creationTimestamp"), reverse=True)
    return sorted(newest, key=lambda pod: objects.text(pod, "status", "phase") != "Failed")[:MAX_PODS]


def _containers(pod: Object) -> Iterator[tuple[str, bool]]:
    """Yield the names of the containers that have begun, and whether it is an earlier run of it."""
    for status in container_statuses(pod):
        name, state = objects.text(status, "name"), objects.mapping(status, "state")
        if name and "waiting" not in state:
            yield name, False
        if name and (objects.number(status, "restartCount") or 0) > 0:
            yield name, True


def _last_words(pod: Object) -> Iterator[str]:
    """Yield the termination messages of a Pod's containers."""
    for status in container_statuses(pod):
        for state in ("lastState", "state"):
            ended = objects.mapping(status, state, "terminated")
            message = objects.text(ended, "message").strip()
            if message or objects.text(ended, "reason") not in {"", "Completed"}:
                place = f"{objects.namespace(pod)}/{objects.name(pod)} {objects.text(status, 'name')}"
                code, at = objects.number(ended, "exitCode"), objects.text(ended, "finishedAt")
                yield f"{place} ended at {at} with {code} ({objects.text(ended, 'reason')}): {message}"


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode(errors="replace")
