"""The requests that an API server received, in its own times: from an audit log, or from a recorder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hack.apiserver.call import call_of
from hack.bench.peers.report import GROUP, PLURAL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.bench.recorder import Exchange, Recorder

#: The user of the controllers, and the User-Agent of the benchmark itself.
CONTROLLER, BENCH = "controller", "bench"
RESOURCE = f"{PLURAL}.{GROUP}"
#: Large enough that the log is never rotated, in MB.
_LOG_SIZE = 10_000


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
        self._log = folder / "audit.log"
        policy = folder / "audit-policy.json"
        policy.write_text(json.dumps(_POLICY))
        self._place = 0
        self._received: list[Received] = []
        self.flags = (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self._log}",
            f"--audit-log-maxsize={_LOG_SIZE}",
        )

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
        yield Received(
            verb=event["verb"],
            name=about.get("name", ""),
            subresource=about.get("subresource", ""),
            by_controller=event["user"]["username"] == CONTROLLER,
            status=event["responseStatus"]["code"],
            began=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
            ended=datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
        )


class RecordedRequests:
    """The requests to an embedded API server; `recorder` is between it and its clients."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def clear(self) -> None:
        """Forget the requests so far."""
        self._recorder.exchanges.clear()

    def received(self) -> list[Received]:
        """Return the requests since `clear`, in the order of their responses."""
        return [_from_exchange(exchange) for exchange in self._recorder.exchanges]


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
