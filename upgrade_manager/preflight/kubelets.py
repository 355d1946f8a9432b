"""Reads /stats/summary and /configz of kubelets: directly, or through the API server; preflight/disk.py calls it.

Directly, the manager needs `get` on nodes/stats and nodes/configz alone (fine-grained kubelet authorization, KEP-2862,
enabled by default since Kubernetes 1.33). Through the API server it needs nodes/proxy, which is also the right to run
commands in every Pod.
"""

from __future__ import annotations

import ipaddress
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from upgrade_manager.api.text import one_line
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import REFUSED, UNTRUSTED, Forbidden, KubeError, Throttled, Transient
from upgrade_manager.preflight.endpoints import Endpoint
from upgrade_manager.preflight.poller import ProbeError

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.preflight.kubelet_transport import KubeletTransport

#: The first version of Kubernetes whose kubelets authorize /configz by nodes/configz.
FINE_GRAINED = (1, 33)
#: Bytes read of a response. In /stats/summary the node comes before the Pods.
HEAD = 512 * 1024
_MAX_PORT = 65535
_VERSION = re.compile(r"v?(\d+)\.(\d+)\b")
_MAX_REASON = 200

_PROXY = "read kubelets through the API server with --kubelet-access=proxy (the chart's value kubelets.viaProxy)"
_CHECK_STATUS = "Check status.addresses and status.daemonEndpoints of the Node"
_ENABLE_TOKENS = f"Set authentication.webhook.enabled: true in its configuration, or {_PROXY}"
_GRANT = "Grant get on nodes/stats and nodes/configz to the manager's service account, as kubectl apply -k deploy does"
_GRANT_PROXY = "Grant get on nodes/proxy to the manager's user"
_TOO_OLD = f"Kubelets before Kubernetes 1.33 have no permission for /configz alone: {_PROXY}"
_RENEW = (
    "Its certificate has to be signed by the CA of the service account and valid for the address: renew it by a "
    f"restart of rke2-server or rke2-agent on the node, or {_PROXY}"
)


class KubeletReader(Protocol):
    """Reads from the kubelet of a node."""

    async def read(self, node: Object, path: str) -> bytes:
        """Return the first HEAD bytes of the response; the caller limits the time.

        Raises ProbeError; Transient or Throttled when the API server itself does not respond.
        """
        ...


class DirectKubelets:
    """A `KubeletReader` that connects to the node's first InternalIP, the one that its kubelet's certificate names."""

    def __init__(self, transport: KubeletTransport) -> None:
        self._transport = transport

    async def read(self, node: Object, path: str) -> bytes:
        """Implement `KubeletReader`."""
        url = f"https://{_address(node)}{path}"
        try:
            response = await self._transport.fetch(url, limit=HEAD)
        except Transient as error:
            remedy = _RENEW if error.reason == UNTRUSTED else ""
            raise ProbeError(f"{url}: {error}", remedy=remedy) from error
        if response.status == HTTPStatus.OK:
            return response.body
        reason = one_line(response.body.decode("utf-8", errors="replace"))[:_MAX_REASON]
        text = f"{url}: {response.status} {reason}".rstrip()
        raise ProbeError(text, remedy=_remedy(node, response.status))


class ProxiedKubelets:
    """A `KubeletReader` through the API server, which connects to the kubelet with its own certificate."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, node: Object, path: str) -> bytes:
        """Implement `KubeletReader`."""
        try:
            return await self._client.read_path(
                f"/api/v1/nodes/{quote(objects.name(node), safe='')}/proxy{path}", limit=HEAD
            )
        except Throttled:
            raise
        except KubeError as error:
            if error.reason == REFUSED:
                raise
            raise ProbeError(str(error), remedy=_GRANT_PROXY if isinstance(error, Forbidden) else "") from error


def _address(node: Object) -> str:
    """Return host and port of the kubelet. Raises ProbeError."""
    hosts = (objects.text(one, "address") for one in objects.items(node, "status", "addresses") if _is_internal(one))
    host = next(filter(None, hosts), "")
    port = objects.number(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port") or 0
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ProbeError("the Node has no InternalIP", remedy=_CHECK_STATUS) from None
    if not 0 < port <= _MAX_PORT:
        raise ProbeError("the Node names no port of its kubelet", remedy=_CHECK_STATUS)
    return str(Endpoint(address.compressed, port))


def _is_internal(address: object) -> bool:
    return objects.text(address, "type") == "InternalIP"


def _remedy(node: Object, status: int) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return _ENABLE_TOKENS
    if status == HTTPStatus.FORBIDDEN:
        return _TOO_OLD if _is_too_old(node) else _GRANT
    return ""


def _is_too_old(node: Object) -> bool:
    match = _VERSION.match(objects.text(node, "status", "nodeInfo", "kubeletVersion"))
    return match is not None and (int(match[1]), int(match[2])) < FINE_GRAINED
