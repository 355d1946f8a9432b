"""Simulated kubelets and API server certificates for preflight tests; healthy by default."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hack.virtual_time import virtual_now
from upgrade_manager.api.annotations import PlanAnnotations
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import ENDPOINT_SLICES, UPGRADE_PLANS
from upgrade_manager.kube.transport import Response
from upgrade_manager.preflight.certificates import Validity
from upgrade_manager.preflight.check import Passed, Pending, Preflight, Rejected, Verdict
from upgrade_manager.preflight.kubelets import DirectKubelets

GIB = 1024**3
STATS, CONFIGURATION = "stats/summary", "configz"


class VirtualClock:
    """A Clock that follows the event loop's time."""

    def now(self) -> datetime:
        return virtual_now()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def summary(*, used: Any = 90 * GIB, capacity: Any = 300 * GIB, **others: Any) -> dict[str, Any]:
    """Build a /stats/summary response."""
    return {"node": {"nodeName": "n", "fs": {"usedBytes": used, "capacityBytes": capacity, **others}}, "pods": []}


def configuration(**values: Any) -> dict[str, Any]:
    """Build a /configz response."""
    return {"kubeletconfig": values}


@dataclass
class Kubelets:
    """The kubelets of nodes, by their InternalIP: a `KubeletTransport`."""

    #: By node and path: a document, a status code, a delay in seconds, an error, or bytes.
    responses: dict[tuple[str, str], Any] = field(default_factory=dict)
    #: Node and path of every request, in order.
    requests: list[tuple[str, str]] = field(default_factory=list)
    max_running: int = 0
    _running: int = 0
    _addresses: dict[str, str] = field(default_factory=dict)
    _nodes: dict[str, str] = field(default_factory=dict)

    def address(self, node: str) -> str:
        """Return the InternalIP of a node."""
        if node not in self._addresses:
            address = self._addresses[node] = str(ipaddress.IPv4Address("10.52.0.1") + len(self._addresses))
            self._nodes[address] = node
        return self._addresses[node]

    def status(self, node: str) -> dict[str, Any]:
        """Return what a node's status has about its kubelet."""
        return {
            "addresses": [{"type": "InternalIP", "address": self.address(node)}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        }

    def node(self, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "status": self.status(name)}

    async def fetch(self, url: str, *, limit: int) -> Response:
        host, path = url.removeprefix("https://").split(":10250/")
        node = self._nodes[host]
        self.requests.append((node, path))
        self._running += 1
        self.max_running = max(self.max_running, self._running)
        try:
            await asyncio.sleep(0.01)
            good = summary() if path == STATS else configuration(imageGCHighThresholdPercent=85)
            response = self.responses.get((node, path), good)
            if isinstance(response, float):
                await asyncio.sleep(response)
                response = good
        finally:
            self._running -= 1
        if isinstance(response, Exception):
            raise response
        if isinstance(response, int):
            return Response(status=response, body=b"error trying to reach service")
        body = response if isinstance(response, bytes) else json.dumps(response).encode()
        return Response(status=200, body=body[:limit])


@dataclass
class Probe:
    """Certificate chains of API servers, by host; valid for a year by default."""

    chains: dict[str, Sequence[Validity] | Exception] = field(default_factory=dict)
    requests: list[tuple[str, int]] = field(default_factory=list)

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        self.requests.append((host, port))
        chain = self.chains.get(host) or [valid_for(days=365)]
        if isinstance(chain, Exception):
            raise chain
        return chain


def valid_for(*, days: float, since: float = 30) -> Validity:
    """Return a validity from `since` days ago for `days` days."""
    now = virtual_now().replace(microsecond=0)
    return Validity(not_before=now - timedelta(days=since), not_after=now + timedelta(days=days))


REFUSED = Transient("connection failed: Connection refused")


def api_servers(*hosts: str, name: str = "kubernetes", port: int = 6443) -> dict[str, Any]:
    """Build an EndpointSlice of Service default/kubernetes."""
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}} for host in hosts],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


@dataclass
class PreflightSetup:
    """An API server, the kubelets and the certificates of all API servers."""

    client: Client
    kubelets: Kubelets = field(default_factory=Kubelets)
    probe: Probe = field(default_factory=Probe)
    nodes: tuple[str, ...] = ("n1", "n2", "n3")
    preflight: Preflight = field(init=False)
    annotations: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Simulate a restart of the manager."""
        self.preflight = Preflight(probe=self.probe, kubelets=DirectKubelets(self.kubelets), clock=VirtualClock())

    async def endpoints(self, *slices: dict[str, Any]) -> None:
        for manifest in slices:
            await self.client.create(
                ENDPOINT_SLICES, {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", **manifest}
            )

    async def plan(self, name: str, spec: dict[str, Any]) -> Object:
        """Create an UpgradePlan."""
        return await self.client.create(
            UPGRADE_PLANS,
            {"apiVersion": UPGRADE_PLANS.api_version, "kind": "UpgradePlan", "metadata": {"name": name}, "spec": spec},
        )

    async def check(self, *, plan: str = "uid") -> Verdict:
        return await self.preflight.check(
            self.client,
            plan=plan,
            annotations=PlanAnnotations(self.annotations),
            nodes=[self.kubelets.node(name) for name in self.nodes],
        )

    async def decide(self) -> tuple[Passed | Rejected, list[str]]:
        """Check until there is a verdict; return it and the messages meanwhile."""
        waited: list[str] = []
        while isinstance(verdict := await self.check(), Pending):
            waited.append(verdict.message)
            await asyncio.sleep(verdict.retry_after)
        return verdict, waited

    async def rejected(self) -> tuple[str, list[str]]:
        """Check until there is a verdict, which must be a rejection; return its cause and the messages meanwhile."""
        verdict, waited = await self.decide()
        assert isinstance(verdict, Rejected)
        return verdict.cause, waited
