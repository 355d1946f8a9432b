"""The logs of Pods, which kubelets serve behind the API server: what a container has reported at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.answers import refused
from hack.actors.freezer import kubelet_of
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import PODS
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.actors.context import ActorContext
    from upgrade_manager.kube.transport import Request

LOGS = "/api/v1/namespaces/{namespace}/pods/{name}/log"
_TEXT = {"content-type": "text/plain"}


class PodLogs:
    """Serves `kubectl logs`, also with `--follow`; simulated processes write nothing until they end."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._pods = context.caches.of(PODS)

    async def log(self, _: Request, values: Mapping[str, str]) -> Response:
        """Serve GET of the log."""
        pod = self._pods.store.get(values["name"], values["namespace"])
        if pod is None:
            return refused(404, f'pods "{values["name"]}" not found')
        node = objects.spec(pod).get("nodeName") or ""
        if not node:
            return refused(400, f"pod {values['name']} does not have a host assigned")
        if not self._context.hosts.of(node).up or self._context.freezer.hangs(kubelet_of(node)):
            return refused(500, f"Get containerLogs of node {node}: dial tcp: connect: connection refused")
        ends = (
            objects.text(container, state, "terminated", "message")
            for container in objects.items(pod, "status", "containerStatuses")
            for state in ("lastState", "state")
        )
        return Response(status=200, headers=_TEXT, body="".join(f"{end.rstrip()}\n" for end in ends if end).encode())
