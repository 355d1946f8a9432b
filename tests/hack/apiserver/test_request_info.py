"""Authorization attributes of requests."""

from __future__ import annotations

import pytest

from hack.apiserver.identity import Attributes
from hack.apiserver.request_info import attributes_of
from upgrade_manager.kube.transport import Request

KUBEVIRT = "/apis/subresources.kubevirt.io/v1/namespaces/x/virtualmachines/a/stop"


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        pytest.param("GET", "/version", {}, Attributes(verb="get", path="/version"), id="path"),
        pytest.param("POST", "/apis/batch/v1", {}, Attributes(verb="post", path="/apis/batch/v1"), id="discovery"),
        pytest.param(
            "GET",
            "/api/v1/nodes/n/proxy/stats/summary",
            {},
            Attributes(verb="get", version="v1", resource="nodes", name="n", subresource="proxy"),
            id="node proxy",
        ),
        pytest.param(
            "PUT",
            KUBEVIRT,
            {},
            Attributes(
                verb="update",
                group="subresources.kubevirt.io",
                version="v1",
                resource="virtualmachines",
                subresource="stop",
                namespace="x",
                name="a",
            ),
            id="aggregated API",
        ),
        pytest.param(
            "GET",
            "/api/v1/namespaces/x/secrets",
            {"fieldSelector": "metadata.name=s", "watch": "1"},
            Attributes(verb="watch", version="v1", resource="secrets", namespace="x", name="s"),
            id="watch of one name",
        ),
        pytest.param(
            "GET",
            "/api/v1/secrets",
            {"fieldSelector": "metadata.name=s,type=t"},
            Attributes(verb="list", version="v1", resource="secrets", name="s"),
            id="list of a name and more",
        ),
        pytest.param(
            "DELETE",
            "/api/v1/namespaces/x",
            {},
            Attributes(verb="delete", version="v1", resource="namespaces", namespace="x", name="x"),
            id="namespace",
        ),
    ],
)
def test_request_has_attributes(method: str, path: str, query: dict[str, str], expected: Attributes) -> None:
    assert attributes_of(Request(method=method, path=path, query=tuple(query.items()))) == expected
