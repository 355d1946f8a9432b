from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kube_server import Reply, ScriptedTransport, failure, node, reset, success
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.events import QUEUE_SIZE, EventRecorder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

START = datetime(2025, 11, 21, 9, 0, 0, 500_000, tzinfo=UTC)
PLAN = {
    "apiVersion": "management.harvesterhci.io/v1beta1",
    "kind": "UpgradePlan",
    "metadata": {"name": "hvup", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}},
    "spec": {"secret": "x"},
}


def accepting(*replies: Reply) -> ScriptedTransport:
    """Accept every request after the scripted replies."""
    first = list(replies)
    return ScriptedTransport(lambda _: first.pop(0) if first else success({}))


@asynccontextmanager
async def recording(
    transport: ScriptedTransport, *, component: str = "upgradeplan-controller", seed: int = 1
) -> AsyncIterator[EventRecorder]:
    loop = asyncio.get_running_loop()
    random = Random(seed)
    recorder = EventRecorder(
        Client(transport, user_agent="test", random=random),
        component=component,
        now=lambda: START + timedelta(seconds=loop.time()),
        random=random,
    )
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def record(recorder: EventRecorder, message: str = "it failed", **more: Any) -> None:
    recorder.record(**{"about": PLAN, "type_": "Warning", "reason": "Failed", "message": message, **more})


def sent(transport: ScriptedTransport) -> list[tuple[str, str, Any]]:
    return [(request.method, request.path, json.loads(request.body)) for request in transport.requests]


async def test_an_event_of_a_cluster_scoped_object_is_in_default() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        record(recorder, "x" * 2000)
        assert await recorder.flush(1)
    ((method, path, body),) = sent(transport)
    assert (method, path) == ("POST", "/api/v1/namespaces/default/events")
    assert body.pop("metadata")["name"].startswith("hvup.")
    assert body == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "management.harvesterhci.io/v1beta1",
            "kind": "UpgradePlan",
            "name": "hvup",
            "uid": "u",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "Failed",
        "message": "x" * 1024,
        "source": {"component": "upgradeplan-controller"},
        "reportingComponent": "upgradeplan-controller",
        "reportingInstance": "",
        "firstTimestamp": "2025-11-21T09:00:00Z",
        "lastTimestamp": "2025-11-21T09:00:00Z",
        "count": 1,
    }


async def test_an_event_of_a_namespaced_object_is_in_its_namespace() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        job = {"kind": "Job", "metadata": {"name": "j" * 253, "namespace": "ns"}}
        record(recorder, about=job)
        assert await recorder.flush(1)
    ((_, path, body),) = sent(transport)
    assert path == "/api/v1/namespaces/ns/events"
    assert body["involvedObject"]["namespace"] == "ns"
    assert len(body["metadata"]["name"]) <= 253


async def test_repetitions_patch_the_count() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for _ in range(3):
            record(recorder)
            assert await recorder.flush(1)
            await asyncio.sleep(10)
    (_, _, created), second, third = sent(transport)
    assert created["count"] == 1
    name = created["metadata"]["name"]
    assert second[:2] == ("PATCH", f"/api/v1/namespaces/default/events/{name}")
    assert second[2] == {"count": 2, "lastTimestamp": "2025-11-21T09:00:10Z", "message": "it failed"}
    assert third[2]["count"] == 3


async def test_repetitions_before_the_first_send_are_one_request() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for _ in range(3):
            record(recorder)
        assert await recorder.flush(1)
    assert [body["count"] for _, _, body in sent(transport)] == [3]


async def test_an_expired_event_is_created_again() -> None:
    transport = accepting(success({}), failure(404, "NotFound"))
    async with recording(transport) as recorder:
        for _ in range(2):
            record(recorder)
            assert await recorder.flush(1)
    assert [method for method, _, _ in sent(transport)] == ["POST", "PATCH", "POST"]
    assert sent(transport)[2][2]["count"] == 2


async def test_similar_messages_are_combined_from_the_tenth_on() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for number in range(12):
            record(recorder, f"message of node-{number}")
            assert await recorder.flush(1)
        await asyncio.sleep(601)
        record(recorder, "much later")
        assert await recorder.flush(1)
    requests = [(method, body["message"], body["count"]) for method, _, body in sent(transport)]
    assert requests[8:] == [
        ("POST", "message of node-8", 1),
        ("POST", "(combined from similar events): message of node-9", 1),
        ("PATCH", "(combined from similar events): message of node-10", 2),
        ("PATCH", "(combined from similar events): message of node-11", 3),
        ("POST", "much later", 1),
    ]


async def test_volatile_numbers_do_not_make_another_event() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for number in range(3):
            record(recorder, f"10.0.0.1:4000{number}: no response within {number}.5 s")
            assert await recorder.flush(1)
    requests = [(method, body["message"], body["count"]) for method, _, body in sent(transport)]
    assert requests == [
        ("POST", "10.0.0.1:40000: no response within 0.5 s", 1),
        ("PATCH", "10.0.0.1:40001: no response within 1.5 s", 2),
        ("PATCH", "10.0.0.1:40002: no response within 2.5 s", 3),
    ]


async def test_a_flood_is_rate_limited() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for _ in range(40):
            record(recorder)
            assert await recorder.flush(1)
        assert len(transport.requests) == 25
        record(recorder, about=node("other"))
        record(recorder, type_="Normal")
        assert await recorder.flush(1)
        assert len(transport.requests) == 27
        await asyncio.sleep(300)
        record(recorder)
        assert await recorder.flush(1)
    assert sent(transport)[-1][2]["count"] == 41


async def test_a_named_event_is_sent_once() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for _ in range(3):
            record(recorder, name="hvup.phase-1")
        for number in range(60):
            record(recorder, name=f"hvup.n{number}")
        assert await recorder.flush(1)
        record(recorder, name="hvup.phase-1")
        assert await recorder.flush(1)
    names = [body["metadata"]["name"] for _, _, body in sent(transport)]
    assert names == ["hvup.phase-1", *[f"hvup.n{number}" for number in range(60)]]


async def test_a_named_event_that_exists_counts_as_sent() -> None:
    transport = accepting(failure(409, "AlreadyExists"))
    async with recording(transport) as recorder:
        record(recorder, name="hvup.phase-1")
        assert await recorder.flush(1)
    assert len(transport.requests) == 1


def stored(count: object, first: str = "2025-11-21T08:00:00Z") -> Reply:
    """Return the stored Event, as the response to a patch."""
    return success({"firstTimestamp": first, "count": count})


@pytest.mark.parametrize(
    ("count", "following"),
    [
        pytest.param(4, [5, 6], id="with a count"),
        pytest.param(None, [2, 3], id="without a count"),
        pytest.param("many", [2, 3], id="with an invalid count"),
    ],
)
@pytest.mark.parametrize("first", ["2025-11-21T08:00:00Z", "2025-11-21T09:00:00Z"], ids=["earlier", "now"])
async def test_the_count_of_an_earlier_process_continues(count: object, following: list[int], first: str) -> None:
    transport = accepting(failure(409, "AlreadyExists"), stored(count, first))
    async with recording(transport) as recorder:
        for _ in range(2):
            record(recorder)
            assert await recorder.flush(1)
    (_, _, created), (_, path, latest), *patched = sent(transport)
    assert path == f"/api/v1/namespaces/default/events/{created['metadata']['name']}"
    assert latest == {"lastTimestamp": "2025-11-21T09:00:00Z", "message": "it failed"}
    assert [(method, body["count"]) for method, _, body in patched] == [("PATCH", count) for count in following]


async def test_a_count_without_a_response_is_not_counted_twice() -> None:
    transport = accepting(failure(409, "AlreadyExists"), stored(4), reset())
    async with recording(transport) as recorder:
        record(recorder)
        assert await recorder.flush(60)
    assert [body.get("count") for _, _, body in sent(transport)] == [1, None, 5, 5]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(success({}), id="created"),
        pytest.param(failure(409, "AlreadyExists"), id="created by another process"),
    ],
)
async def test_an_event_that_expires_during_its_update_is_created(reply: Reply) -> None:
    transport = accepting(failure(409, "AlreadyExists"), failure(404, "NotFound"), reply)
    async with recording(transport) as recorder:
        record(recorder)
        assert await recorder.flush(1)
    (_, _, first), (method, _, _), (_, _, second) = sent(transport)
    assert (method, first) == ("PATCH", second)


SAME = {"about": PLAN, "type_": "Warning", "reason": "Failed", "message": "it failed after 3 s"}


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param({}, True, id="the same"),
        pytest.param({"message": "it failed after 17.2 s"}, True, id="other volatile numbers"),
        pytest.param({"message": "it failed on node-3"}, False, id="another message"),
        pytest.param({"reason": "Other"}, False, id="another reason"),
        pytest.param({"type_": "Normal"}, False, id="another type"),
        pytest.param({"about": {**PLAN, "metadata": {"name": "hvup", "uid": "v"}}}, False, id="another uid"),
        pytest.param({"about": {**PLAN, "metadata": {"name": "hvup", "uid": "u"}}}, True, id="another resourceVersion"),
    ],
)
async def test_the_name_follows_from_object_type_reason_and_message(changed: dict[str, Any], same: bool) -> None:  # noqa: FBT001
    transport = accepting()
    for seed, more in enumerate(({}, changed)):
        async with recording(transport, seed=seed) as recorder:
            record(recorder, **{**SAME, **more})
            assert await recorder.flush(1)
    first, second = (body["metadata"]["name"] for _, _, body in sent(transport))
    assert (first == second) is same


async def test_two_components_have_an_event_each() -> None:
    transport = accepting()
    for component in ("one", "another"):
        async with recording(transport, component=component) as recorder:
            record(recorder)
            assert await recorder.flush(1)
    assert len({body["metadata"]["name"] for _, _, body in sent(transport)}) == 2


async def test_an_event_without_a_response_is_not_created_twice() -> None:
    transport = accepting(reset(), failure(409, "AlreadyExists"), stored(1, "2025-11-21T09:00:00Z"))
    async with recording(transport) as recorder:
        record(recorder)
        assert await recorder.flush(60)
    (_, _, first), (_, _, second), (method, _, latest) = sent(transport)
    assert first["metadata"]["name"] == second["metadata"]["name"]
    assert (method, "count" in latest) == ("PATCH", False)


async def test_without_a_server_only_named_events_are_retried_for_ever() -> None:
    transport = ScriptedTransport(lambda _: reset())
    async with recording(transport) as recorder:
        record(recorder)
        assert not await recorder.flush(100)
        assert await recorder.flush(100)
        assert len(transport.requests) == 12
        assert all(10 <= gap <= 12 for gap in transport.gaps)
        record(recorder, name="hvup.phase-1")
        assert not await recorder.flush(1000)


async def test_repetitions_during_an_outage_are_sent_once() -> None:
    transport = ScriptedTransport(others=[1.0, reset(), success({})])
    async with recording(transport) as recorder:
        record(recorder)
        await asyncio.sleep(0.5)
        record(recorder)
        assert await recorder.flush(60)
    assert [body["count"] for _, _, body in sent(transport)][-1] == 2


async def test_an_event_that_is_forbidden_at_first_is_retried() -> None:
    transport = accepting(failure(403, "Forbidden"))
    async with recording(transport) as recorder:
        record(recorder, name="hvup.phase-1")
        assert await recorder.flush(15)
    assert [body["metadata"]["name"] for _, _, body in sent(transport)] == ["hvup.phase-1"] * 2


@pytest.mark.parametrize("name", [pytest.param("", id="a counted one"), pytest.param("hvup.phase-1", id="a named one")])
async def test_an_event_that_stays_forbidden_is_tried_twelve_times(name: str) -> None:
    transport = ScriptedTransport(lambda _: failure(403, "Forbidden"))
    async with recording(transport) as recorder:
        record(recorder, name=name)
        assert await recorder.flush(200)
    assert len(transport.requests) == 12


async def test_an_invalid_event_is_dropped() -> None:
    transport = accepting(failure(422, "Invalid"))
    async with recording(transport) as recorder:
        record(recorder)
        assert await recorder.flush(1)
        record(recorder, reason="Other")
        assert await recorder.flush(1)
    assert len(transport.requests) == 2


async def test_a_full_queue_drops_all_but_named_events() -> None:
    random = Random(1)
    client = Client(accepting(), user_agent="test", random=random)
    recorder = EventRecorder(client, component="x", now=lambda: START, random=random)
    for number in range(QUEUE_SIZE + 10):
        record(recorder, about=node(f"n{number}"))
    record(recorder, name="kept")
    assert len(recorder._queue) == QUEUE_SIZE + 1
    assert not await recorder.flush(1)


async def test_the_least_recently_used_series_are_evicted() -> None:
    random = Random(1)
    client = Client(accepting(), user_agent="test", random=random)
    recorder = EventRecorder(client, component="x", now=lambda: START, random=random)
    for number in range(5000):
        record(recorder, about=node(f"n{number}"))
    assert len(recorder._correlator._series) == 4096
    assert all("spec" not in series.about for series in recorder._queue)
