"""Kubelet endpoints for disk usage and configuration: behind the API server's node proxy, and by kubelet_access.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hack.actors.answers import document, refused
from hack.actors.freezer import kubelet_of
from hack.scenario import Disk
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hack.actors.context import ActorContext
    from upgrade_manager.kube.transport import Response

_GIB = 1024**3
_DEFAULT_THRESHOLD = 85
STATS = "/api/v1/nodes/{name}/proxy/stats/summary"
CONFIGURATION = "/api/v1/nodes/{name}/proxy/configz"


class KubeletStats:
    """Serves the endpoints of all kubelets whose host is up."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._nodes = context.caches.of(NODES)
        #: The time of the first request to each kubelet.
        self._first: dict[str, datetime] = {}

    async def stats(self, _: Request, values: Mapping[str, str]) -> Response:
        """Serve GET /stats/summary."""
        name = values["name"]
        refusal = self._refusal(name)
        if refusal is not None:
            return refusal
        disk = self._disk(name)
        capacity, used = int(disk.capacity_gib * _GIB), int(disk.used_gib * _GIB)
        filled = {
            "time": self._context.timestamp(),
            "availableBytes": capacity - used,
            "capacityBytes": capacity,
            "usedBytes": used,
        }
        return document({"node": {"nodeName": name, "fs": filled, "runtime": {"imageFs": filled}}, "pods": []})

    async def configuration(self, _: Request, values: Mapping[str, str]) -> Response:
        """Serve GET /configz, with the wrapper of real kubelets."""
        name = values["name"]
        refusal = self._refusal(name)
        if refusal is not None:
            return refusal
        threshold = self._disk(name).image_gc_high_threshold
        high = _DEFAULT_THRESHOLD if threshold is None else threshold
        return document({"kubeletconfig": {"imageGCHighThresholdPercent": high, "imageGCLowThresholdPercent": 80}})

    async def serve(self, node: str, path: str) -> Response:
        """Serve a GET request to a node's kubelet."""
        serve = {"/stats/summary": self.stats, "/configz": self.configuration}.get(path)
        if serve is None:
            return refused(404, "404 page not found")
        return await serve(Request(method="GET", path=path), {"name": node})

    def node_at(self, address: str, port: int) -> str | None:
        """Return the name of the node whose kubelet has this address."""
        for node in self._nodes.store.list():
            status = objects.status(node)
            addresses = [one["address"] for one in status.get("addresses") or () if one["type"] == "InternalIP"]
            if address in addresses and port == status["daemonEndpoints"]["kubeletEndpoint"]["Port"]:
                return objects.name(node)
        return None

    def _disk(self, name: str) -> Disk:
        return self._context.scenario.nodes.disks.get(name, Disk())

    def _refusal(self, name: str) -> Response | None:
        if self._nodes.store.get(name) is None:
            return refused(404, f'nodes "{name}" not found')
        dead = not self._context.hosts.of(name).up or self._context.freezer.hangs(kubelet_of(name))
        if dead or not self._disk(name).answers or self._since_first_request(name) < self._disk(name).unreachable:
            return refused(503, f"error trying to reach service: dial tcp: connect: connection refused ({name})")
        return None

    def _since_first_request(self, name: str) -> float:
        """Return the seconds of the scenario since the first request."""
        now = self._context.now()
        passed = (now - self._first.setdefault(name, now)).total_seconds()
        return passed / self._context.scale if self._context.scale else math.inf
