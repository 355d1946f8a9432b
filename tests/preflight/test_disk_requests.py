from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.apiserver import make_server
from tests.support.fitness import CONFIGURATION, GIB, STATS, Kubelets, configuration, summary
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import REFUSED, KubeError, Throttled, Transient
from upgrade_manager.preflight.disk import HEAD, TIMEOUT, Disk, read_disk
from upgrade_manager.preflight.poller import ProbeError

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Request, Response


@pytest.fixture
def kubelets() -> Kubelets:
    return Kubelets()


@pytest.fixture
async def client(kubelets: Kubelets) -> Client:
    server = make_server()
    kubelets.serve(server.handlers)
    return Client(server, user_agent="test", random=Random(1))


@pytest.mark.rule("pipeline: the kubelet of each managed node reports usage and threshold")
async def test_summary_and_configz_are_read_once(client: Client, kubelets: Kubelets) -> None:
    kubelets.answers = {("n1", CONFIGURATION): configuration(imageGCHighThresholdPercent=60)}
    assert await read_disk(client, "n1") == Disk(used=90 * GIB, capacity=300 * GIB, threshold=60)
    assert kubelets.asked == [("n1", CONFIGURATION), ("n1", STATS)]


async def test_a_long_response_is_truncated(client: Client, kubelets: Kubelets) -> None:
    kubelets.answers = {("n1", STATS): {**summary(), "pods": [{"podRef": {"name": "x" * 1000}}] * (2 * HEAD // 1000)}}
    assert (await read_disk(client, "n1")).used == 90 * GIB


@pytest.mark.parametrize("path", [STATS, CONFIGURATION])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(503, "error trying to reach service", id="no connection"),
        pytest.param(502, "error trying to reach service", id="bad gateway"),
        pytest.param(500, "error trying to reach service", id="kubelet error"),
        pytest.param(401, "error trying to reach service", id="not authenticated"),
        pytest.param(403, "error trying to reach service", id="forbidden"),
        pytest.param(404, "error trying to reach service", id="not found"),
        pytest.param(400, "error trying to reach service", id="bad request"),
        pytest.param(b"<html>", "invalid JSON", id="no JSON"),
        pytest.param(b"", "invalid JSON", id="nothing"),
        pytest.param(60.0, f"no response within {TIMEOUT:g} s", id="timeout"),
    ],
)
async def test_an_unusable_response_is_a_probe_error(
    client: Client, kubelets: Kubelets, path: str, answer: Any, reason: str
) -> None:
    kubelets.answers = {("n1", path): answer}
    with pytest.raises(ProbeError, match=reason):
        await read_disk(client, "n1")


class Broken:
    """An API server that fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.paths: list[str] = []

    async def send(self, request: Request) -> Response:
        raise AssertionError(request.path)

    def open(self, request: Request) -> Any:
        self.paths.append(request.path)
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Transient("connection refused", reason=REFUSED), id="refused"),
        pytest.param(Throttled("too many requests", retry_after=1), id="throttled"),
    ],
)
async def test_an_api_server_error_is_raised(error: KubeError) -> None:
    with pytest.raises(type(error), match=str(error)):
        await read_disk(Client(Broken(error), user_agent="test", random=Random(1)), "n1")


async def test_the_node_name_is_quoted_in_the_path() -> None:
    broken = Broken(Transient("", reason=REFUSED))
    with pytest.raises(Transient):
        await read_disk(Client(broken, user_agent="test", random=Random(1)), "../x?y")
    assert broken.paths == ["/api/v1/nodes/..%2Fx%3Fy/proxy/configz"]
