"""Kubelets and API servers as the checks before an upgrade find them: all is well, unless a test says otherwise."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hack.virtual_time import virtual_now
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Response
from upgrade_manager.preflight.certificates import Validity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.apiserver.handlers import Handlers
    from upgrade_manager.kube.transport import Request

GIB = 1024**3
STATS, CONFIGURATION = "stats/summary", "configz"


class VirtualClock:
    """The loop's time as a calendar and as a clock."""

    def now(self) -> datetime:
        return virtual_now()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def summary(*, used: Any = 90 * GIB, capacity: Any = 300 * GIB, **others: Any) -> dict[str, Any]:
    """What /stats/summary holds."""
    return {"node": {"nodeName": "n", "fs": {"usedBytes": used, "capacityBytes": capacity, **others}}, "pods": []}


def configuration(**values: Any) -> dict[str, Any]:
    """What /configz holds."""
    return {"kubeletconfig": values}


@dataclass
class Kubelets:
    """Answers behind the API server: a document, a status, seconds of silence before a good answer, or text."""

    answers: dict[tuple[str, str], Any] = field(default_factory=dict)
    #: Node and path of every question, in order; how many were open at a time, at most.
    asked: list[tuple[str, str]] = field(default_factory=list)
    most: int = 0
    _open: int = 0

    def serve(self, handlers: Handlers) -> None:
        """Be asked behind this API server."""
        handlers.register("/api/v1/nodes/{name}/proxy/{path:rest}", self._answer)

    async def _answer(self, _: Request, values: Mapping[str, str]) -> Response:
        key = (values["name"], values["path"])
        self.asked.append(key)
        self._open += 1
        self.most = max(self.most, self._open)
        try:
            await asyncio.sleep(0.01)
            good = summary() if key[1] == STATS else configuration(imageGCHighThresholdPercent=85)
            answer = self.answers.get(key, good)
            if isinstance(answer, float):
                await asyncio.sleep(answer)
                answer = good
        finally:
            self._open -= 1
        if isinstance(answer, int):
            refusal = {
                "kind": "Status",
                "status": "Failure",
                "code": answer,
                "message": "error trying to reach service",
            }
            return Response(status=answer, body=json.dumps(refusal).encode())
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return Response(status=200, body=body)


@dataclass
class Probe:
    """What API servers show, by host; certificates that are good for a year where nothing else is said."""

    shown: dict[str, Sequence[Validity] | Exception] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        self.asked.append((host, port))
        shown = self.shown.get(host) or [lasting(days=365)]
        if isinstance(shown, Exception):
            raise shown
        return shown


def lasting(*, days: float, since: float = 30) -> Validity:
    """Valid since so many days, and for so many."""
    now = virtual_now().replace(microsecond=0)
    return Validity(not_before=now - timedelta(days=since), not_after=now + timedelta(days=days))


REFUSED = Transient("connection failed: Connection refused")


def api_servers(*hosts: str, name: str = "kubernetes", port: int = 6443) -> dict[str, Any]:
    """An EndpointSlice of default/kubernetes."""
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}} for host in hosts],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
