"""The audit log of the real API server, which the rules of docs/examples/audit fill."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

from hack.control_plane.control_plane import ControlPlane
from hack.control_plane.flags import AUDIT_LOG
from tests.support.programs.polling import eventually

#: Seconds until an event is written: it may follow the response.
_SECONDS = 30.0
AuditEvent = dict[str, Any]


class AuditLog:
    """The events of one control plane from now on."""

    def __init__(self, plane: ControlPlane) -> None:
        self._path = plane.folder / AUDIT_LOG
        self._begin = self._path.stat().st_size if self._path.exists() else 0

    def events(self) -> Iterator[AuditEvent]:
        """Yield the events that are written; the last line may not be complete."""
        with self._path.open("rb") as file:
            file.seek(self._begin)
            for line in file:
                if line.endswith(b"\n"):
                    yield json.loads(line)

    async def find(self, fits: Callable[[AuditEvent], bool]) -> AuditEvent:
        """Return the first event that fits, as soon as it is written. Raises TimeoutError."""

        async def found() -> AuditEvent | None:
            return await asyncio.to_thread(lambda: next(filter(fits, self.events()), None))

        event: AuditEvent = await eventually(found, seconds=_SECONDS)
        return event


def user(event: AuditEvent) -> str:
    """Return the user on whose behalf the request was made."""
    name: str = (event.get("impersonatedUser") or event["user"])["username"]
    return name


def annotations_of(event: AuditEvent, policy: str) -> dict[str, str]:
    """Return the audit annotations of an admission policy."""
    prefix = f"{policy}/"
    found = event.get("annotations") or {}
    return {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}
