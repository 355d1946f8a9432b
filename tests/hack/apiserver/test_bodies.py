"""Request bodies in protobuf, encoded here as kubectl encodes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
SERVICES = "/api/v1/namespaces/default/services"
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
NAME = {1: b"one"}
CONTAINER = {1: b"main", 2: b"a", 3: [b"sleep", b"9"]}


def encoded(message: dict[int, Any]) -> bytes:
    """Encode fields by number: whole numbers, bytes, messages and lists of these."""
    parts = []
    for number, value in message.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int):
                parts.append(varint(number << 3) + varint(one % 2**64))
                continue
            content = encoded(one) if isinstance(one, dict) else one
            parts.append(varint(number << 3 | 2) + varint(len(content)) + content)
    return b"".join(parts)


def varint(number: int) -> bytes:
    """Encode a whole number in groups of seven bits."""
    more = number >> 7
    return bytes([number & 0x7F | (0x80 if more else 0)]) + (varint(more) if more else b"")


def body_of(kind: str, message: dict[int, Any], *, version: str = "v1") -> bytes:
    """Return a body with its envelope."""
    return b"k8s\x00" + encoded({1: {1: version.encode(), 2: kind.encode()}, 2: message, 3: b"", 4: b""})


async def send(server: ApiServer, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Send a body in protobuf."""
    headers = {"accept": "application/json", "content-type": "application/vnd.kubernetes.protobuf"}
    response = await server.send(Request(method=method, path=path, headers=headers, body=body))
    return response.status, json.loads(response.body)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({2: CONTAINER}, {"containers": [{"command": ["sleep", "9"]}]}, id="list"),
        pytest.param({2: CONTAINER, 3: b"Never", 4: 0}, {"terminationGracePeriodSeconds": 0}, id="zero of a pointer"),
        pytest.param({2: CONTAINER, 7: {1: b"a", 2: b"b"}}, {"nodeSelector": {"a": "b"}}, id="map"),
        pytest.param({2: CONTAINER, 25: -1}, {"priority": -1}, id="negative number"),
        pytest.param({2: CONTAINER, 11: 1}, {"hostNetwork": True}, id="boolean"),
        pytest.param(
            {1: {1: b"v", 2: {1: {1: b"/"}}}, 2: CONTAINER},
            {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
            id="inlined struct",
        ),
        pytest.param(
            {2: {**CONTAINER, 8: {2: {1: b"cpu", 2: {1: b"500m"}}}}},
            {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]},
            id="quantity",
        ),
    ],
)
async def test_field_of_a_pod_is_read(server: ApiServer, spec: dict[int, Any], expected: dict[str, Any]) -> None:
    status, pod = await send(server, "POST", PODS, body_of("Pod", {1: {**NAME, 8: b""}, 2: spec}))
    assert status == 201, pod
    assert includes(pod["spec"], expected), pod["spec"]


def includes(value: Any, expected: Any) -> bool:
    """Report whether a value has all expected members."""
    if isinstance(expected, dict):
        return all(key in value and includes(value[key], one) for key, one in expected.items())
    if isinstance(expected, list):
        return all(includes(*pair) for pair in zip(value, expected, strict=True))
    return bool(value == expected)


async def test_secret_time_and_port_are_read(server: ApiServer) -> None:
    secret = body_of("Secret", {1: NAME, 2: {1: b"a", 2: b"\xff"}, 3: b"Opaque"})
    assert (await send(server, "POST", SECRETS, secret))[1]["data"] == {"a": "/w=="}
    ports = [{3: 80, 4: {1: 1, 3: b"http"}}, {1: b"x", 3: 81, 4: {1: 0, 2: 8080}}]
    service = await send(server, "POST", SERVICES, body_of("Service", {1: NAME, 2: {1: ports}}))
    assert [port["targetPort"] for port in service[1]["spec"]["ports"]] == ["http", 8080]
    lease = body_of("Lease", {1: NAME, 2: {1: b"me", 3: {1: 1767225600, 2: 5000}}}, version="coordination.k8s.io/v1")
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert (await send(server, "POST", leases, lease))[1]["spec"]["acquireTime"] == "2026-01-01T00:00:00.000005Z"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param(MAPS, body_of("ConfigMap", {1: NAME, 99: 1}), 415, id="unknown field"),
        pytest.param(PODS, body_of("Pod", {1: NAME, 2: {2: CONTAINER, 14: {}}}), 415, id="field without a type"),
        pytest.param(
            DAEMON_SETS,
            body_of("DaemonSet", {1: NAME}),
            415,
            id="kind without a type",
        ),
        pytest.param(MAPS, body_of("Secret", {1: NAME}), 400, id="another kind"),
        pytest.param(MAPS, b"{}", 400, id="no envelope"),
        pytest.param(MAPS, body_of("ConfigMap", {1: NAME})[:-8], 400, id="cut off"),
        pytest.param(MAPS, body_of("ConfigMap", {1: 7}), 400, id="number for a message"),
        pytest.param(MAPS, body_of("ConfigMap", {1: {7: b"x"}}), 400, id="message for a number"),
    ],
)
async def test_body_is_refused(server: ApiServer, path: str, body: bytes, status: int) -> None:
    code, refusal = await send(server, "POST", path, body)
    assert (code, refusal["kind"]) == (status, "Status")


async def test_delete_options_are_read(server: ApiServer) -> None:
    await send(server, "POST", MAPS, body_of("ConfigMap", {1: NAME}))
    code, refusal = await send(server, "DELETE", f"{MAPS}/one", body_of("DeleteOptions", {2: {1: b"other"}}))
    assert code == 409
    assert "the UID in the precondition (other)" in refusal["message"]
    assert (await send(server, "DELETE", f"{MAPS}/one", body_of("DeleteOptions", {1: 0})))[0] == 200
