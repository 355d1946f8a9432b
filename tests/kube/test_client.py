from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.support.server.kube_server import (
    FedStream,
    Reply,
    ScriptedTransport,
    background,
    event,
    failure,
    listing,
    node,
    reset,
    success,
)
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Gone, KubeError, Terminal, Throttled, Transient
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SECRETS
from upgrade_manager.kube.transport import Response

PARTIAL = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "s"}}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}}


def client(*replies: Response | Exception, validation: str = "") -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(others=replies)
    return Client(transport, user_agent="manager/1", random=Random(1), field_validation=validation), transport


PATH = "/apis/batch/v1/namespaces/ns/jobs"
STRICT = "?fieldValidation=Strict"
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
FOREGROUND = OPTIONS | {"propagationPolicy": "Foreground", "preconditions": {"uid": "u"}}
#: By name: the call, its request, the body, and how its errors name it.
CALLS: dict[str, tuple[Callable[[Client], Any], str, object, str]] = {
    "get": (lambda api: api.get(JOBS, "j", namespace="ns"), f"GET {PATH}/j", None, "get jobs.batch ns/j"),
    "list": (lambda api: api.list(NODES), "GET /api/v1/nodes?limit=500", None, "list nodes"),
    "list in a namespace": (
        lambda api: api.list(JOBS, namespace="ns"), f"GET {PATH}?limit=500", None, "list jobs.batch ns"
    ),
    "create": (lambda api: api.create(JOBS, JOB), f"POST {PATH}{STRICT}", JOB, "create jobs.batch ns/j"),
    "create, named by the server": (
        lambda api: api.create(JOBS, {"metadata": {"generateName": "j-"}}, namespace="ns"),
        f"POST {PATH}{STRICT}", {"metadata": {"generateName": "j-"}}, "create jobs.batch ns",
    ),
    "patch": (
        lambda api: api.patch(JOBS, "j", MergePatch({"a": 1}), namespace="ns", subresource="status"),
        f"PATCH {PATH}/j/status{STRICT}", {"a": 1}, "patch jobs.batch/status ns/j",
    ),
    "update": (
        lambda api: api.update(JOBS, JOB, subresource="status"),
        f"PUT {PATH}/j/status{STRICT}", JOB, "update jobs.batch/status ns/j",
    ),
    "delete": (lambda api: api.delete(NODES, "n"), "DELETE /api/v1/nodes/n", OPTIONS, "delete nodes n"),
    "delete one uid": (
        lambda api: api.delete(JOBS, "j", namespace="ns", uid="u", propagation="Foreground"),
        f"DELETE {PATH}/j", FOREGROUND, "delete jobs.batch ns/j",
    ),
    "delete all": (
        lambda api: api.delete_collection(JOBS, namespace="ns", label_selector="a=b"),
        f"DELETE {PATH}?labelSelector=a=b", OPTIONS, "delete all jobs.batch ns",
    ),
    "path": (lambda api: api.raw("GET", "/x", query=(("a", "b"),)), "GET /x?a=b", None, "get /x"),
    "path with a body": (lambda api: api.raw("PUT", "/x", body={}), "PUT /x", {}, "put /x"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "line", "sent", "about"), CALLS.values(), ids=CALLS)
async def test_call_is_one_request_which_its_error_names(
    call: Callable[[Client], Any], line: str, sent: object, about: str
) -> None:
    api, transport = client(Response(status=404), validation="Strict")
    with pytest.raises(KubeError, match=f"^{about}: 404$"):
        await call(api)
    (request,) = transport.requests
    query = "&".join(f"{key}={value}" for key, value in request.query)
    assert f"{request.method} {request.path}{'?' if query else ''}{query}" == line
    headers = {"accept": "application/json", "user-agent": "manager/1"}
    if sent is None:
        assert (request.headers, request.body) == (headers, b"")
    else:
        kind = "merge-patch+json" if request.method == "PATCH" else "json"
        assert request.headers == {**headers, "content-type": f"application/{kind}"}
        assert json.loads(request.body) == sent


@pytest.mark.parametrize("name", ["get", "create", "patch", "update"])
async def test_call_returns_the_stored_object(name: str) -> None:
    api, _ = client(success(JOB))
    assert await CALLS[name][0](api) == JOB


async def test_find_returns_none_for_a_missing_object_only() -> None:
    api, transport = client(success(JOB), failure(404, "NotFound"), Response(status=403))
    assert await api.find(JOBS, "j", namespace="ns") == JOB
    assert await api.find(JOBS, "j", namespace="ns") is None
    with pytest.raises(Terminal, match=r"^get jobs.batch ns/j: 403"):
        await api.find(JOBS, "j", namespace="ns")
    assert {f"{request.method} {request.path}" for request in transport.requests} == {f"GET {PATH}/j"}


async def test_raw_call_returns_the_response_within_its_timeout() -> None:
    api, transport = client(Response(status=202, body=b"text"))
    response = await api.raw("GET", "/api/v1/nodes/n/proxy/stats/summary", timeout=5)
    assert (response.status, response.body) == (202, b"text")
    assert transport.requests[0].timeout == 5


async def test_metadata_only() -> None:
    api, transport = client(success(PARTIAL), success(PARTIAL), success({**PARTIAL, "data": {"k": "v"}}))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    assert await api.get(SECRETS, "s", namespace="ns", metadata_only=True) == secret
    assert await api.patch(SECRETS, "s", MergePatch({"a": 1}), namespace="ns", metadata_only=True) == secret
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    assert {request.headers["accept"] for request in transport.requests} == {accept}
    with pytest.raises(Terminal, match="whole objects instead of their metadata"):
        await api.get(SECRETS, "s", namespace="ns", metadata_only=True)


async def test_list_reads_all_pages_of_the_latest_state() -> None:
    nameless = node("b")
    del nameless["kind"], nameless["apiVersion"]
    api, transport = client(listing(node("a"), version="5", continues="t"), listing(nameless, version="5"))
    found = await api.list(NODES, label_selector="a=b", field_selector="c=d")
    assert found.items == [node("a"), node("b")]
    assert (found.resource_version, found.paginated) == ("5", True)
    selectors = {"labelSelector": "a=b", "fieldSelector": "c=d"}
    assert transport.queries == [{**selectors, "limit": "500"}, {**selectors, "limit": "500", "continue": "t"}]


async def test_list_metadata_in_a_namespace_from_any_cache() -> None:
    api, transport = client(listing(PARTIAL, kind="PartialObjectMetadataList"))
    found = await api.list(SECRETS, namespace="ns", metadata_only=True, resource_version="0")
    assert found.items == [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]
    (request,) = transport.requests
    assert request.path == "/api/v1/namespaces/ns/secrets"
    assert request.headers["accept"] == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    assert transport.queries == [{"resourceVersion": "0", "limit": "500"}]


async def test_expired_continue_token_lists_everything_at_once() -> None:
    first = listing(node("a"), version="5", continues="t")
    api, transport = client(first, failure(410, "Expired"), listing(node("a"), node("b"), version="9"))
    found = await api.list(NODES, resource_version="3")
    assert ([item["metadata"]["name"] for item in found.items], found.resource_version) == (["a", "b"], "9")
    assert transport.queries[2] == {"resourceVersion": "3"}
    api, _ = client(failure(410, "Expired"))
    with pytest.raises(Gone):
        await api.list(NODES, resource_version="3")


async def test_webhook_conflict_of_a_creation_is_terminal() -> None:
    api, _ = client(failure(409, "Conflict"))
    with pytest.raises(Terminal, match=r"create jobs\.batch ns/j: 409 Conflict"):
        await api.create(JOBS, JOB)


MALFORMED = {
    "not JSON": Response(status=200, body=b"<html>"),
    "nested too deeply": Response(status=200, body=b"[" * 100_000),
    "not an object": success([]),
    "not a list": success({"kind": "Node"}),
    "a list of strings": success({"kind": "NodeList", "items": ["x"]}),
}


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED.keys())
async def test_malformed_response_is_transient(reply: Response) -> None:
    api, _ = client(reply)
    with pytest.raises(Transient, match="list nodes: the response"):
        await api.list(NODES)


@pytest.mark.parametrize("name", ["not JSON", "nested too deeply", "not an object"])
async def test_malformed_object_is_transient(name: str) -> None:
    api, _ = client(MALFORMED[name])
    with pytest.raises(Transient, match="get nodes a: the response"):
        await api.get(NODES, "a")


BROKEN_LISTS: dict[str, tuple[bytes | Exception | None, str]] = {
    "the connection breaks": (reset(), "list nodes: the connection broke"),
    "it ends early": (None, "list nodes: the response"),
    "it never ends": (b" ", "list nodes: the response did not end within 60 s"),
}


@pytest.mark.parametrize(("last", "message"), BROKEN_LISTS.values(), ids=BROKEN_LISTS.keys())
async def test_list_that_does_not_arrive_is_transient(last: bytes | Exception | None, message: str) -> None:
    api, transport = client()
    transport.lists.append(FedStream(b'{"items":[{},', last))
    with pytest.raises(Transient, match=message):
        await api.list(NODES)
    assert transport.open_streams == 0


async def test_large_list_lets_other_tasks_run() -> None:
    body = listing(*(node(f"n{number}", data="x" * 5000) for number in range(200))).body
    api, transport = client()
    transport.lists.append(FedStream(body, None))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with background(other()):
        assert len((await api.list(NODES)).items) == 200
    assert turns > len(body) / 65536
    assert transport.open_streams == 0


async def test_watch() -> None:
    api, transport = client()
    transport.watches.append(FedStream(event("ADDED", node("a")) + b"cut off", None))
    async with api.watch(Selection(resource=NODES, label_selector="a"), resource_version="7", timeout=300) as watch:
        assert [[entry.type for entry in batch] async for batch in watch] == [["ADDED"]]
    assert transport.requests[0].query == (
        ("labelSelector", "a"),
        ("watch", "1"),
        ("allowWatchBookmarks", "true"),
        ("resourceVersion", "7"),
        ("timeoutSeconds", "300"),
    )


async def test_watch_with_initial_events() -> None:
    api, transport = client()
    # The last event has no line feed.
    transport.streams.append(FedStream(event("ADDED", node("a")).strip(), None))
    async with api.watch(Selection(resource=NODES), resource_version="", timeout=300, initial_events=True) as watch:
        assert [len(batch) async for batch in watch] == [1]
    assert transport.requests[0].query == (
        ("watch", "1"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", "300"),
    )


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        pytest.param([b"ab", b"cd"], b"abcd", id="a short response"),
        pytest.param([b"abcde", b"f"], b"abcde", id="the limit within a chunk"),
        pytest.param([b"abc", b"def", b"ghi"], b"abcde", id="a long response"),
        pytest.param([], b"", id="an empty response"),
    ],
)
async def test_read_path_returns_the_first_bytes(pieces: list[bytes], kept: bytes) -> None:
    api, transport = client()
    transport.watches.append(FedStream(*pieces, None))
    assert await api.read_path("/x", limit=5, timeout=3) == kept
    (request,) = transport.requests
    assert (request.method, request.path, request.timeout, transport.open_streams) == ("GET", "/x", 3, 0)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(FedStream(b"abc", Transient("reset by peer", reason="x")), "reset by peer", id="it breaks"),
        pytest.param(failure(503, reason="x"), "503 x", id="an error response"),
    ],
)
async def test_read_path_raises_when_there_is_no_response(reply: Reply, message: str) -> None:
    api, transport = client()
    transport.watches.append(reply)
    with pytest.raises(Transient, match=f"get /x: {message}") as caught:
        await api.read_path("/x", limit=2)
    assert caught.value.reason == "x"


async def test_client_without_retries_sends_each_request_once() -> None:
    api, transport = client(failure(429, retry_after=1), success({"kind": "Node", "metadata": {"name": "n"}}))
    with pytest.raises(Throttled):
        await api.without_retries().patch(NODES, "n", MergePatch({"spec": {"unschedulable": True}}))
    assert len(transport.requests) == 1
    assert (await api.get(NODES, "n"))["metadata"]["name"] == "n"
