"""Requests and their responses, recorded by a transport or read from a real API server's audit log."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from upgrade_manager.api.keys import Component
from upgrade_manager.kube.resources import KUBEVIRTS, MANAGED_CHARTS
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from upgrade_manager.kube.transport import Response, Stream, Transport

CONFLICT = 409
#: Names in requests and created objects that change something for one pair of releases only: KubeVirt's updates of VMs
#: by Harvester's chart, and RKE2's chart of VM networks.
_OF_RELEASE_PAIR = (
    MANAGED_CHARTS.plural,
    f"{MANAGED_CHARTS.kind} ",
    KUBEVIRTS.plural,
    Component.SKIP_ON,
    Component.SKIP_OFF,
    "helm-install-rke2-multus",
)
_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH"}
_WRITES = frozenset({*_METHODS.values(), "DELETE"})
#: Resources whose writes are logged with their responses, by API group, and those without.
_LOGGED_WITH_RESPONSE = {
    "": ["secrets"],
    "apps": ["deployments", "deployments/status"],
    "batch": ["jobs", "jobs/status"],
    "discovery.k8s.io": ["endpointslices"],
    "harvesterhci.io": ["virtualmachineimages", "virtualmachineimages/status"],
    "upgrade.cattle.io": ["plans", "plans/status"],
}
_LOGGED = {"management.harvesterhci.io": ["upgradeplans", "upgradeplans/status"], "": ["nodes", "services"]}
#: MB; large enough that the log is never rotated.
_LOG_SIZE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its response."""

    request: Request
    status: int
    #: Seconds, of the request and of its response (a stream's headers).
    began: float
    ended: float
    #: The response's body; empty for a stream.
    body: bytes = b""

    @property
    def watches(self) -> bool:
        """True for a watch."""
        return any(key == "watch" and value in {"true", "1"} for key, value in self.request.query)

    @property
    def user_agent(self) -> str:
        """Return the client's User-Agent."""
        return self.request.headers.get("user-agent", "")

    @property
    def writes(self) -> bool:
        """True for a create, update, patch or delete."""
        return self.request.method in _WRITES

    @property
    def writes_status(self) -> bool:
        """True for a write of a plan's status."""
        return self.writes and "/upgradeplans/" in self.request.path and self.request.path.endswith("/status")

    @property
    def is_of_release_pair(self) -> bool:
        """True for a request that the rows of a pair of releases add; writes of the status have other changes, too."""
        is_named = self.request.path.endswith(("/events", "/plans"))
        created = self.request.body.decode() if is_named and self.request.body else ""
        text = f"{self.request.path}?{urlencode(self.request.query, safe='=')} {created}"
        return any(name in text for name in _OF_RELEASE_PAIR)


class Recorder:
    """A transport that records `exchanges` in the order of their responses."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.exchanges: list[Exchange] = []

    def of(self, user_agent: str) -> list[Exchange]:
        """Return the exchanges of one client, by the prefix of its User-Agent."""
        return [exchange for exchange in self.exchanges if exchange.user_agent.startswith(user_agent)]

    async def send(self, request: Request) -> Response:
        """Pass on and record."""
        began = self._now()
        response = await self._inner.send(request)
        self._record(request, response.status, began, body=response.body)
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Pass on, and record when the stream is open."""
        began = self._now()
        async with self._inner.open(request) as stream:
            self._record(request, stream.status, began)
            yield stream

    def _record(self, request: Request, status: int, began: float, *, body: bytes = b"") -> None:
        self.exchanges.append(Exchange(request=request, status=status, began=began, ended=self._now(), body=body))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def audited(folder: Path, policy: dict[str, Any]) -> tuple[Path, tuple[str, ...]]:
    """Write an audit policy into the folder; return the log there, and the flags with which an API server writes it."""
    log, file = folder / "audit.log", folder / "audit-policy.json"
    file.write_text(json.dumps(policy))
    return log, (f"--audit-policy-file={file}", f"--audit-log-path={log}", f"--audit-log-maxsize={_LOG_SIZE}")


def span(event: dict[str, Any]) -> tuple[float, float]:
    """Return the times of an audit event's request and of its stage, in seconds since the epoch."""
    received, stage = (datetime.fromisoformat(event[name]) for name in ("requestReceivedTimestamp", "stageTimestamp"))
    return received.timestamp(), stage.timestamp()


class Audit:
    """The audit log of a real API server that is started with `flags`."""

    def __init__(self, folder: Path) -> None:
        self._log, self.flags = audited(folder, _policy())

    def exchanges(self) -> list[Exchange]:
        """Return the writes so far in the order of their responses; times are in seconds since the epoch."""
        with self._log.open() as lines:
            return [_exchange(json.loads(line)) for line in lines]


def _policy() -> dict[str, Any]:
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [_rule("RequestResponse", _LOGGED_WITH_RESPONSE), _rule("Request", _LOGGED), {"level": "None"}],
    }


def _rule(level: str, groups: dict[str, list[str]]) -> dict[str, Any]:
    resources = [{"group": group, "resources": names} for group, names in groups.items()]
    return {"level": level, "verbs": list(_METHODS), "resources": resources}


def _exchange(event: dict[str, Any]) -> Exchange:
    request = Request(
        method=_METHODS[event["verb"]],
        path=urlsplit(event["requestURI"]).path,
        headers={"user-agent": event.get("userAgent", "")},
        body=_bytes(event.get("requestObject")),
    )
    began, ended = span(event)
    return Exchange(
        request=request,
        status=event["responseStatus"]["code"],
        began=began,
        ended=ended,
        body=_bytes(event.get("responseObject")),
    )


def _bytes(obj: Any) -> bytes:
    return json.dumps(obj).encode() if obj is not None else b""
