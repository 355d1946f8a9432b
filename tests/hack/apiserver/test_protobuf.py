"""Protobuf bodies of kubectl's typed clients, made here by a small writer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.protobuf import MEDIA_TYPE, MESSAGES, decode
from hack.apiserver.status import StatusError
from tests.support.wire import Wire, parse
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

META = (1, [(1, "demo"), (11, [(1, "a"), (2, "b")]), (8, [(1, 1767225600)])])


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*fields: tuple[int, Any]) -> bytes:
    """A message of numbered values; a list is a message inside of it."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
            continue
        raw = message(*value) if isinstance(value, list) else value if isinstance(value, bytes) else value.encode()
        out += varint(number << 3 | 2) + varint(len(raw)) + raw
    return out


def body(version: str, kind: str, *fields: tuple[int, Any]) -> bytes:
    return b"k8s\x00" + message((1, [(1, version), (2, kind)]), (2, message(*fields)), (3, ""), (4, ""))


def test_metadata() -> None:
    assert decode(body("v1", "Namespace", META, (2, []), (3, [(1, "")]))) == {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": "demo", "labels": {"a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
    }


def test_lists_maps_and_bytes() -> None:
    secret = decode(body("v1", "Secret", META, (2, [(1, "k"), (2, b"\x00")]), (3, "Opaque"), (5, 1)))
    assert (secret["data"], secret["type"], secret["immutable"]) == ({"k": "AA=="}, "Opaque", True)
    role = decode(
        body("rbac.authorization.k8s.io/v1", "ClusterRole", META, (2, [(1, "get"), (1, "list"), (3, "pods")]))
    )
    assert role["rules"] == [{"verbs": ["get", "list"], "resources": ["pods"]}]


def test_negative_numbers() -> None:
    job = decode(body("batch/v1", "Job", (2, [(7, -1)])))
    assert job["spec"] == {"backoffLimit": -1}


def test_empty_strings_are_not_there() -> None:
    review = decode(body("authorization.k8s.io/v1", "SelfSubjectAccessReview", (2, [(1, [(1, ""), (2, "get")])])))
    assert review["spec"] == {"resourceAttributes": {"verb": "get"}}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(body("v1", "Node", (1, [])), id="a kind"),
        pytest.param(body("v1", "Namespace", (9, "x")), id="a field"),
        pytest.param(body("batch/v1", "Job", (2, [(6, [(2, [(99, "x")])])])), id="a field deep inside"),
    ],
)
def test_what_is_not_known_is_refused(given: bytes) -> None:
    with pytest.raises(StatusError) as refusal:
        decode(given)
    assert refusal.value.code == 415


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(b"{}", id="no protobuf"),
        pytest.param(b"k8s\x00", id="nothing"),
        pytest.param(b"k8s\x00\x0a\x7f", id="cut off"),
        pytest.param(b"k8s\x00\xff", id="a number without an end"),
        pytest.param(b"k8s\x00\x0f", id="no wire type"),
        pytest.param(body("v1", "Namespace", (1, [(1, b"\xff")])), id="no text"),
        pytest.param(body("v1", "Namespace", (1, 7)), id="a number for a message"),
    ],
)
def test_garbage_is_refused(given: bytes) -> None:
    with pytest.raises(StatusError) as refusal:
        decode(given)
    assert refusal.value.code == 400


def test_every_type_in_the_tables_is_known() -> None:
    simple = {"string", "int", "bool", "bytes", "time", "ignored"}
    for fields in MESSAGES.values():
        for entry in fields.values():
            kind = entry.split()[1].removeprefix("[]").removeprefix("map:")
            assert kind in simple or kind in MESSAGES


async def test_a_namespace_is_created_from_protobuf(server: ApiServer) -> None:
    request = Request(
        method="POST",
        path="/api/v1/namespaces",
        headers={"content-type": MEDIA_TYPE, "accept": "application/vnd.kubernetes.protobuf,application/json"},
        body=body("v1", "Namespace", META),
    )
    answer = parse(await server.send(request))
    assert (answer.status, answer.body["metadata"]["name"]) == (201, "demo")


async def test_delete_options_come_in_protobuf_too(server: ApiServer) -> None:
    wire = Wire(server)
    path = "/api/v1/namespaces/default/configmaps"
    await wire.post(path, {"metadata": {"name": "a"}})
    refused = Request(
        method="DELETE",
        path=f"{path}/a",
        headers={"content-type": MEDIA_TYPE},
        body=body("v1", "DeleteOptions", (2, [(1, "another")]), (4, "Background")),
    )
    assert (await server.send(refused)).status == 409
    done = replace(refused, body=body("v1", "DeleteOptions", (1, 0)))
    assert (await server.send(done)).status == 200
