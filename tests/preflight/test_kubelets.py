"""Which request a kubelet gets, and what is reported when it is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.support.server.apiserver import make_server
from tests.support.server.kube_server import ScriptedTransport
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import REFUSED, UNTRUSTED, KubeError, Throttled, Transient
from upgrade_manager.kube.transport import Response
from upgrade_manager.preflight.kubelets import HEAD, DirectKubelets, ProxiedKubelets
from upgrade_manager.preflight.poller import ProbeError

V4, V6 = {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "fd00:0::1"}
HOST = {"type": "Hostname", "address": "n1"}
ENDPOINT = {"kubeletEndpoint": {"Port": 10250}}


class Recorder:
    """A KubeletTransport that answers everything alike."""

    def __init__(self, response: Response | Exception) -> None:
        self.response = response
        self.requests: list[tuple[str, int]] = []

    async def fetch(self, url: str, *, limit: int) -> Response:
        self.requests.append((url, limit))
        if isinstance(self.response, Exception):
            raise self.response
        return self.response


def node(*addresses: dict[str, str], version: str = "v1.34.3+rke2r3", **status: Any) -> dict[str, Any]:
    defaults = {"addresses": [*addresses], "daemonEndpoints": ENDPOINT, "nodeInfo": {"kubeletVersion": version}}
    return {"metadata": {"name": "n1"}, "status": defaults | status}


async def refusal(kubelet: Recorder, of: dict[str, Any]) -> ProbeError:
    with pytest.raises(ProbeError) as caught:
        await DirectKubelets(kubelet).read(of, "/configz")
    return caught.value


@pytest.mark.rule("pipeline: kubelets are read at the Node's first InternalIP and its kubelet's port")
@pytest.mark.parametrize(
    ("of", "url"),
    [
        pytest.param(node(HOST, V4), "https://10.0.0.1:10250/configz", id="IPv4"),
        pytest.param(node(V6), "https://[fd00::1]:10250/configz", id="IPv6"),
        pytest.param(node(V6, V4), "https://[fd00::1]:10250/configz", id="dual stack"),
        pytest.param(node(V4, V6), "https://10.0.0.1:10250/configz", id="dual stack, IPv4 first"),
        pytest.param(
            node(V4, daemonEndpoints={"kubeletEndpoint": {"Port": 1}}), "https://10.0.0.1:1/configz", id="port"
        ),
    ],
)
async def test_address_is_the_first_internal_ip(of: dict[str, Any], url: str) -> None:
    kubelet = Recorder(Response(status=200, body=b"{}"))
    assert await DirectKubelets(kubelet).read(of, "/configz") == b"{}"
    assert kubelet.requests == [(url, HEAD)]


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        pytest.param(node(), "has no InternalIP", id="no address"),
        pytest.param(node(HOST), "has no InternalIP", id="a name only"),
        pytest.param(node({"type": "InternalIP", "address": "n1.example/x?"}), "has no InternalIP", id="no IP"),
        pytest.param({"metadata": {"name": "n1"}}, "has no InternalIP", id="no status"),
        pytest.param(node(V4, daemonEndpoints=None), "names no port", id="no port"),
        pytest.param(node(V4, daemonEndpoints={"kubeletEndpoint": {"Port": 0}}), "names no port", id="port 0"),
        pytest.param(node(V4, daemonEndpoints={"kubeletEndpoint": {"Port": 70000}}), "names no port", id="port 70000"),
    ],
)
async def test_node_without_an_address_gets_no_request(of: dict[str, Any], reason: str) -> None:
    kubelet = Recorder(Response(status=200))
    error = await refusal(kubelet, of)
    assert reason in str(error)
    assert error.remedy == "Check status.addresses and status.daemonEndpoints of the Node"
    assert kubelet.requests == []


@pytest.mark.rule("pipeline: a kubelet that refuses is named with the reason and what to do")
@pytest.mark.parametrize(
    ("response", "version", "reason", "remedy"),
    [
        pytest.param(
            Response(status=401, body=b"Unauthorized"),
            "v1.34.3",
            "https://10.0.0.1:10250/configz: 401 Unauthorized",
            "Set authentication.webhook.enabled: true in its configuration, or read kubelets through the API server",
            id="tokens are not accepted",
        ),
        pytest.param(
            Response(status=403, body=b"Forbidden (user=a, verb=get,\n resource=nodes, subresource(s)=[configz])\n"),
            "v1.33.0",
            "403 Forbidden (user=a, verb=get, resource=nodes, subresource(s)=[configz])",
            "Grant get on nodes/stats and nodes/configz to the manager's service account",
            id="no permission",
        ),
        pytest.param(
            Response(status=403, body=b"Forbidden"),
            "v1.32.4+rke2r1",
            "403 Forbidden",
            "Kubelets before Kubernetes 1.33 have no permission for /configz alone: read kubelets through the API "
            "server with --kubelet-access=proxy (the chart's value kubelets.viaProxy)",
            id="too old",
        ),
        pytest.param(Response(status=403), "unknown", "403", "Grant get on nodes/stats", id="unknown version"),
        pytest.param(
            Transient("certificate not trusted: self-signed certificate", reason=UNTRUSTED),
            "v1.34.3",
            "https://10.0.0.1:10250/configz: certificate not trusted: self-signed certificate",
            "Its certificate has to be signed by the CA of the service account and valid for the address",
            id="another CA",
        ),
        pytest.param(Response(status=302), "v1.34.3", "302", "", id="redirect"),
        pytest.param(Response(status=503, body=b"<html>" * 900), "v1.34.3", "503 <html>", "", id="server error"),
        pytest.param(Transient("connection failed", reason=REFUSED), "v1.34.3", "connection failed", "", id="refused"),
    ],
)
async def test_refusal_has_reason_and_remedy(
    response: Response | Exception, version: str, reason: str, remedy: str
) -> None:
    error = await refusal(Recorder(response), node(V4, version=version))
    assert reason in str(error)
    assert error.remedy.startswith(remedy)
    assert bool(error.remedy) is bool(remedy)
    assert len(str(error)) < 300


@pytest.mark.parametrize(
    ("answer", "error", "remedy"),
    [
        pytest.param(Transient("refused", reason=REFUSED), Transient, "", id="no API server"),
        pytest.param(Throttled("too many requests", retry_after=1), Throttled, "", id="throttled"),
        pytest.param(Transient("bad gateway", status=502), ProbeError, "", id="no kubelet"),
        pytest.param(
            Response(status=403, body=b"{}"),
            ProbeError,
            "Grant get on nodes/proxy to the manager's user",
            id="forbidden",
        ),
    ],
)
async def test_api_servers_own_errors_are_raised(
    answer: Response | Exception, error: type[KubeError], remedy: str
) -> None:
    transport = ScriptedTransport(lambda _: answer)
    with pytest.raises(error) as caught:
        await ProxiedKubelets(Client(transport, user_agent="test", random=Random(1))).read(
            {"metadata": {"name": "../x?y"}}, "/configz"
        )
    assert transport.requests[0].path == "/api/v1/nodes/..%2Fx%3Fy/proxy/configz"
    assert getattr(caught.value, "remedy", "") == remedy


async def test_proxy_returns_the_beginning_of_the_response() -> None:
    server = make_server()

    async def respond(_request: object, values: Any) -> Response:
        assert dict(values) == {"name": "n1"}
        return Response(status=200, body=b"x" * (HEAD + 1))

    server.handlers.register("/api/v1/nodes/{name}/proxy/configz", respond)
    kubelets = ProxiedKubelets(Client(server, user_agent="test", random=Random(1)))
    assert await kubelets.read({"metadata": {"name": "n1"}}, "/configz") == b"x" * HEAD
