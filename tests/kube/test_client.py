from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kube_server import FedStream, ScriptedTransport, event, failure, listing, node, success
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Gone, Terminal, Transient
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SECRETS
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Request

PARTIAL = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "s"}}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}}


def client(*replies: Response | Exception, validation: str = "") -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(others=replies)
    return Client(transport, user_agent="manager/1", random=Random(1), field_validation=validation), transport


def body(request: Request) -> Any:
    return json.loads(request.body)


async def test_get() -> None:
    api, transport = client(success(JOB))
    assert await api.get(JOBS, "j", namespace="ns") == JOB
    (request,) = transport.requests
    assert (request.method, request.path, request.query, request.body) == (
        "GET",
        "/apis/batch/v1/namespaces/ns/jobs/j",
        (),
        b"",
    )
    assert request.headers == {"accept": "application/json", "user-agent": "manager/1"}


async def test_get_metadata_only() -> None:
    api, transport = client(success(PARTIAL), success({**PARTIAL, "data": {"k": "v"}}))
    found = await api.get(SECRETS, "s", namespace="ns", metadata_only=True)
    assert found == {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    assert transport.requests[0].headers["accept"] == accept
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


async def test_an_expired_continue_token_lists_everything_at_once() -> None:
    first = listing(node("a"), version="5", continues="t")
    api, transport = client(first, failure(410, "Expired"), listing(node("a"), node("b"), version="9"))
    found = await api.list(NODES, resource_version="3")
    assert ([item["metadata"]["name"] for item in found.items], found.resource_version) == (["a", "b"], "9")
    assert transport.queries[2] == {"resourceVersion": "3"}


async def test_expired_first_page_is_an_error() -> None:
    api, _ = client(failure(410, "Expired"))
    with pytest.raises(Gone):
        await api.list(NODES, resource_version="3")


MALFORMED = {
    "not JSON": Response(status=200, body=b"<html>"),
    "nested too deeply": Response(status=200, body=b"[" * 100_000),
    "not an object": success([]),
    "not a list": success({"kind": "Node"}),
    "a list of strings": success({"kind": "NodeList", "items": ["x"]}),
}


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_response_is_transient(reply: Response) -> None:
    api, _ = client(reply)
    with pytest.raises(Transient, match="list nodes: the response"):
        await api.list(NODES)


async def test_watch() -> None:
    api, transport = client()
    transport.watches.append(FedStream(event("ADDED", node("a")) + b"cut off", None))
    async with api.watch(Selection(resource=NODES, label_selector="a"), resource_version="7", timeout=300) as watch:
        batches = [batch async for batch in watch]
    assert [[entry.type for entry in batch] for batch in batches] == [["ADDED"]]
    assert transport.requests[0].query == (
        ("labelSelector", "a"),
        ("watch", "1"),
        ("allowWatchBookmarks", "true"),
        ("resourceVersion", "7"),
        ("timeoutSeconds", "300"),
    )


async def test_watch_with_initial_events() -> None:
    api, transport = client()
    transport.streams.append(FedStream(None))
    async with api.watch(Selection(resource=NODES), resource_version="", timeout=300, initial_events=True) as watch:
        assert [batch async for batch in watch] == []
    assert transport.requests[0].query == (
        ("watch", "1"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", "300"),
    )


async def test_a_last_event_without_a_line_feed_is_received() -> None:
    api, transport = client()
    transport.watches.append(FedStream(event("ADDED", node("a")).strip(), None))
    async with api.watch(Selection(resource=NODES), resource_version="7", timeout=300) as watch:
        assert [len(batch) async for batch in watch] == [1]


async def test_create() -> None:
    api, transport = client(success(JOB), success(JOB), validation="Strict")
    assert await api.create(JOBS, JOB) == JOB
    await api.create(JOBS, {"metadata": {"generateName": "j-"}}, namespace="other")
    first, second = transport.requests
    assert (first.method, first.path) == ("POST", "/apis/batch/v1/namespaces/ns/jobs")
    assert first.query == (("fieldValidation", "Strict"),)
    assert first.headers["content-type"] == "application/json"
    assert body(first) == JOB
    assert second.path == "/apis/batch/v1/namespaces/other/jobs"


async def test_patch() -> None:
    api, transport = client(success(JOB), success(PARTIAL), validation="Strict")
    assert await api.patch(JOBS, "j", MergePatch({"a": 1}), namespace="ns", subresource="status") == JOB
    found = await api.patch(SECRETS, "s", MergePatch({"a": 1}), namespace="ns", metadata_only=True)
    assert found["kind"] == "Secret"
    first, second = transport.requests
    assert (first.method, first.path) == ("PATCH", "/apis/batch/v1/namespaces/ns/jobs/j/status")
    assert first.headers["content-type"] == "application/merge-patch+json"
    assert (first.query, first.body) == ((("fieldValidation", "Strict"),), b'{"a":1}')
    assert "PartialObjectMetadata" in second.headers["accept"]


async def test_update() -> None:
    api, transport = client(success(JOB))
    assert await api.update(JOBS, JOB, subresource="status") == JOB
    (request,) = transport.requests
    assert (request.method, request.path) == ("PUT", "/apis/batch/v1/namespaces/ns/jobs/j/status")
    assert body(request) == JOB


async def test_delete() -> None:
    api, transport = client(success({}), success({}))
    await api.delete(JOBS, "j", namespace="ns", uid="u", propagation="Foreground")
    await api.delete(NODES, "n")
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    first, second = transport.requests
    assert (first.method, first.path) == ("DELETE", "/apis/batch/v1/namespaces/ns/jobs/j")
    assert body(first) == {**options, "propagationPolicy": "Foreground", "preconditions": {"uid": "u"}}
    assert body(second) == {**options, "propagationPolicy": "Background"}


async def test_delete_collection() -> None:
    api, transport = client(success({}))
    await api.delete_collection(JOBS, namespace="ns", label_selector="a=b")
    (request,) = transport.requests
    assert (request.method, request.path) == ("DELETE", "/apis/batch/v1/namespaces/ns/jobs")
    assert request.query == (("labelSelector", "a=b"),)


async def test_raw_requests() -> None:
    api, transport = client(Response(status=200, body=b"text"), Response(status=202))
    response = await api.raw("GET", "/api/v1/nodes/n/proxy/stats/summary", timeout=5, query=(("a", "b"),))
    assert response.body == b"text"
    assert (await api.raw("PUT", "/apis/x/start", body={}, timeout=7)).status == 202
    first, second = transport.requests
    assert (first.method, first.timeout, first.query) == ("GET", 5, (("a", "b"),))
    assert (second.method, second.timeout, second.body) == ("PUT", 7, b"{}")


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


async def test_read_path_raises_when_the_response_breaks() -> None:
    api, transport = client()
    transport.watches.append(FedStream(b"abc", Transient("reset by peer", reason="x")))
    with pytest.raises(Transient, match="get /x: reset by peer") as caught:
        await api.read_path("/x", limit=2)
    assert caught.value.reason == "x"


async def test_read_path_raises_an_error_response() -> None:
    api, transport = client()
    transport.watches.append(failure(503))
    with pytest.raises(Transient, match="get /x: 503"):
        await api.read_path("/x", limit=2)


MESSAGES = {
    "get": ("get jobs.batch ns/j: 404", lambda api: api.get(JOBS, "j", namespace="ns")),
    "list": ("list nodes: 404", lambda api: api.list(NODES)),
    "list in a namespace": ("list jobs.batch ns: 404", lambda api: api.list(JOBS, namespace="ns")),
    "create": ("create jobs.batch ns/j: 404", lambda api: api.create(JOBS, JOB)),
    "patch": ("patch nodes/status n: 404", lambda api: api.patch(NODES, "n", MergePatch({}), subresource="status")),
    "update": ("update jobs.batch ns/j: 404", lambda api: api.update(JOBS, JOB)),
    "delete": ("delete nodes n: 404", lambda api: api.delete(NODES, "n")),
    "delete all": ("delete all jobs.batch ns: 404", lambda api: api.delete_collection(JOBS, namespace="ns")),
    "path": ("get /x: 404", lambda api: api.raw("GET", "/x")),
}


@pytest.mark.parametrize(("message", "call"), MESSAGES.values(), ids=MESSAGES.keys())
async def test_errors_name_the_verb_and_the_object(message: str, call: Any) -> None:
    api, _ = client(Response(status=404))
    with pytest.raises(Exception, match=f"^{message}$"):
        await call(api)
