"""The requests that an API server received, in its own times: from an audit log, or from a recorder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.apiserver.call import call_of
from hack.bench.peers.report import GROUP, PLURAL
from hack.bench.recorder import audited, span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.bench.recorder import Exchange, Recorder

#: The user of the controllers, and the User-Agent of the benchmark itself.
CONTROLLER, BENCH = "controller", "bench"
RESOURCE = f"{PLURAL}.{GROUP}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request, with the times of its arrival and of its response in seconds."""

    verb: str
    name: str
    subresource: str
    by_controller: bool
    status: int
    began: float
    ended: float

    @property
    def changes(self) -> bool:
        """True for the benchmark's change of an object."""
        return not self.by_controller and self.verb == "patch" and self.status < 300  # noqa: PLR2004  # success

    @property
    def reports(self) -> bool:
        """True for the controller's successful patch of a status."""
        is_patch = self.by_controller and self.verb == "patch" and self.subresource == "status"
        return is_patch and self.status < 300  # noqa: PLR2004  # success


class AuditLog:
    """The requests of the controllers, and the benchmark's patches, in the audit log of a real API server."""

    def __init__(self, folder: Path) -> None:
        self._log, self.flags = audited(folder, _POLICY)
        self._place = 0
        self._received: list[Received] = []

    def clear(self) -> None:
        """Forget the requests so far."""
        self.received()
        self._received = []

    def received(self) -> list[Received]:
        """Return the requests since `clear`, in the order of their responses."""
        with self._log.open("rb") as log:
            log.seek(self._place)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._place += len(line)
                self._received += from_audit(json.loads(line))
        return self._received


def from_audit(event: dict[str, Any]) -> Iterator[Received]:
    """Yield the request of an audit event; a watch counts when it begins, and other requests when they end."""
    if (event["stage"] == "ResponseStarted") is (event["verb"] == "watch"):
        about = event.get("objectRef", {})
        began, ended = span(event)
        yield Received(
            verb=event["verb"],
            name=about.get("name", ""),
            subresource=about.get("subresource", ""),
            by_controller=event["user"]["username"] == CONTROLLER,
            status=event["responseStatus"]["code"],
            began=began,
            ended=ended,
        )


class RecordedRequests:
    """The requests to an embedded API server; `recorder` is between it and its clients."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._received: list[Received] = []

    def clear(self) -> None:
        """Forget the requests so far."""
        self._recorder.exchanges.clear()
        self._received = []

    def received(self) -> list[Received]:
        """Return the requests since `clear`, in the order of their responses; each is read once: callers poll."""
        self._received += map(_from_exchange, self._recorder.exchanges[len(self._received) :])
        return self._received


def _from_exchange(exchange: Exchange) -> Received:
    call = call_of(exchange.request)
    return Received(
        verb=call.verb,
        name=call.name,
        subresource=call.subresource,
        by_controller=not exchange.user_agent.startswith(BENCH),
        status=exchange.status,
        began=exchange.began,
        ended=exchange.ended,
    )


_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": [CONTROLLER]},
        {"level": "Metadata", "verbs": ["patch"], "resources": [{"group": GROUP, "resources": [PLURAL]}]},
        {"level": "None"},
    ],
}
