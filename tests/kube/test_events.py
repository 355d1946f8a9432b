from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kube_server import Reply, ScriptedTransport, answer, node, refusal, reset
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
    """A server that takes every event after the scripted replies."""
    first = list(replies)
    return ScriptedTransport(lambda _: first.pop(0) if first else answer({}))


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


def tell(recorder: EventRecorder, message: str = "it failed", **more: Any) -> None:
    recorder.record(**{"about": PLAN, "type_": "Warning", "reason": "Failed", "message": message, **more})


def sent(transport: ScriptedTransport) -> list[tuple[str, str, Any]]:
    return [(request.method, request.path, json.loads(request.body)) for request in transport.requests]


async def test_an_event_about_a_cluster_scoped_object_is_as_describe_wants_it() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        tell(recorder, "x" * 2000)
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


async def test_an_event_about_a_namespaced_object_lives_beside_it() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        job = {"kind": "Job", "metadata": {"name": "j" * 253, "namespace": "ns"}}
        tell(recorder, about=job)
        assert await recorder.flush(1)
    ((_, path, body),) = sent(transport)
    assert path == "/api/v1/namespaces/ns/events"
    assert body["involvedObject"]["namespace"] == "ns"
    assert len(body["metadata"]["name"]) <= 253


async def test_repetitions_raise_the_count_by_a_patch() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for _ in range(3):
            tell(recorder)
            assert await recorder.flush(1)
            await asyncio.sleep(10)
    (_, _, created), second, third = sent(transport)
    assert created["count"] == 1
    name = created["metadata"]["name"]
    assert second[:2] == ("PATCH", f"/api/v1/namespaces/default/events/{name}")
    assert second[2] == {"count": 2, "lastTimestamp": "2025-11-21T09:00:10Z", "message": "it failed"}
    assert third[2]["count"] == 3


async def test_repetitions_before_the_first_was_sent_are_one_request() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for _ in range(3):
            tell(recorder)
        assert await recorder.flush(1)
    assert [body["count"] for _, _, body in sent(transport)] == [3]


async def test_an_event_that_expired_is_created_again() -> None:
    transport = accepting(answer({}), refusal(404, "NotFound"))
    async with recording(transport) as recorder:
        for _ in range(2):
            tell(recorder)
            assert await recorder.flush(1)
    assert [method for method, _, _ in sent(transport)] == ["POST", "PATCH", "POST"]
    assert sent(transport)[2][2]["count"] == 2


async def test_similar_messages_are_combined_from_the_tenth_on() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for number in range(12):
            tell(recorder, f"message of node-{number}")
            assert await recorder.flush(1)
        await asyncio.sleep(601)
        tell(recorder, "much later")
        assert await recorder.flush(1)
    told = [(method, body["message"], body["count"]) for method, _, body in sent(transport)]
    assert told[8:] == [
        ("POST", "message of node-8", 1),
        ("POST", "(combined from similar events): message of node-9", 1),
        ("PATCH", "(combined from similar events): message of node-10", 2),
        ("PATCH", "(combined from similar events): message of node-11", 3),
        ("POST", "much later", 1),
    ]


async def test_messages_that_differ_by_chance_are_one_event_with_the_newest_words() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for number in range(3):
            tell(recorder, f"10.0.0.1:4000{number}: no answer within {number}.5 s")
            assert await recorder.flush(1)
    told = [(method, body["message"], body["count"]) for method, _, body in sent(transport)]
    assert told == [
        ("POST", "10.0.0.1:40000: no answer within 0.5 s", 1),
        ("PATCH", "10.0.0.1:40001: no answer within 1.5 s", 2),
        ("PATCH", "10.0.0.1:40002: no answer within 2.5 s", 3),
    ]


async def test_a_flood_is_cut_and_time_lets_more_through() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for _ in range(40):
            tell(recorder)
            assert await recorder.flush(1)
        assert len(transport.requests) == 25
        tell(recorder, about=node("other"))
        tell(recorder, type_="Normal")
        assert await recorder.flush(1)
        assert len(transport.requests) == 27
        await asyncio.sleep(300)
        tell(recorder)
        assert await recorder.flush(1)
    assert sent(transport)[-1][2]["count"] == 41


async def test_a_named_event_is_sent_once_however_often_it_is_recorded() -> None:
    transport = accepting()
    async with recording(transport) as recorder:
        for _ in range(3):
            tell(recorder, name="hvup.phase-1")
        for number in range(60):
            tell(recorder, name=f"hvup.n{number}")
        assert await recorder.flush(1)
        tell(recorder, name="hvup.phase-1")
        assert await recorder.flush(1)
    names = [body["metadata"]["name"] for _, _, body in sent(transport)]
    assert names == ["hvup.phase-1", *[f"hvup.n{number}" for number in range(60)]]


async def test_a_named_event_that_is_there_counts_as_sent() -> None:
    transport = accepting(refusal(409, "AlreadyExists"))
    async with recording(transport) as recorder:
        tell(recorder, name="hvup.phase-1")
        assert await recorder.flush(1)
    assert len(transport.requests) == 1


def stored(count: object, first: str = "2025-11-21T08:00:00Z") -> Reply:
    """What the server has, as it answers a patch."""
    return answer({"firstTimestamp": first, "count": count})


@pytest.mark.parametrize(
    ("count", "following"),
    [
        pytest.param(4, [5, 6], id="and counted it"),
        pytest.param(None, [2, 3], id="and did not say how often"),
        pytest.param("many", [2, 3], id="and did not say it in a number"),
    ],
)
@pytest.mark.parametrize("first", ["2025-11-21T08:00:00Z", "2025-11-21T09:00:00Z"], ids=["long ago", "just now"])
async def test_what_an_earlier_process_has_said_is_counted_on(count: object, following: list[int], first: str) -> None:
    transport = accepting(refusal(409, "AlreadyExists"), stored(count, first))
    async with recording(transport) as recorder:
        for _ in range(2):
            tell(recorder)
            assert await recorder.flush(1)
    (_, _, created), (_, path, looked), *patched = sent(transport)
    assert path == f"/api/v1/namespaces/default/events/{created['metadata']['name']}"
    assert looked == {"lastTimestamp": "2025-11-21T09:00:00Z", "message": "it failed"}
    assert [(method, body["count"]) for method, _, body in patched] == [("PATCH", count) for count in following]


async def test_a_count_that_got_no_answer_is_not_counted_twice() -> None:
    transport = accepting(refusal(409, "AlreadyExists"), stored(4), reset())
    async with recording(transport) as recorder:
        tell(recorder)
        assert await recorder.flush(60)
    assert [body.get("count") for _, _, body in sent(transport)] == [1, None, 5, 5]


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(answer({}), id="it is said anew"),
        pytest.param(refusal(409, "AlreadyExists"), id="and come back at once: the next time will count it"),
    ],
)
async def test_what_an_earlier_process_has_said_may_expire_just_then(again: Reply) -> None:
    transport = accepting(refusal(409, "AlreadyExists"), refusal(404, "NotFound"), again)
    async with recording(transport) as recorder:
        tell(recorder)
        assert await recorder.flush(1)
    (_, _, first), (method, _, _), (_, _, second) = sent(transport)
    assert (method, first) == ("PATCH", second)


SAME = {"about": PLAN, "type_": "Warning", "reason": "Failed", "message": "it failed after 3 s"}


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param({}, True, id="the same"),
        pytest.param({"message": "it failed after 17.2 s"}, True, id="other numbers of chance"),
        pytest.param({"message": "it failed on node-3"}, False, id="another message"),
        pytest.param({"reason": "Other"}, False, id="another reason"),
        pytest.param({"type_": "Normal"}, False, id="another type"),
        pytest.param({"about": {**PLAN, "metadata": {"name": "hvup", "uid": "v"}}}, False, id="a namesake"),
        pytest.param({"about": {**PLAN, "metadata": {"name": "hvup", "uid": "u"}}}, True, id="a later state of it"),
    ],
)
async def test_a_name_follows_from_what_is_said_about_what(changed: dict[str, Any], same: bool) -> None:  # noqa: FBT001
    transport = accepting()
    for seed, more in enumerate(({}, changed)):
        async with recording(transport, seed=seed) as recorder:
            tell(recorder, **{**SAME, **more})
            assert await recorder.flush(1)
    first, second = (body["metadata"]["name"] for _, _, body in sent(transport))
    assert (first == second) is same


async def test_two_components_that_say_the_same_have_an_event_each() -> None:
    transport = accepting()
    for component in ("one", "another"):
        async with recording(transport, component=component) as recorder:
            tell(recorder)
            assert await recorder.flush(1)
    assert len({body["metadata"]["name"] for _, _, body in sent(transport)}) == 2


async def test_an_event_whose_answer_was_lost_is_not_doubled() -> None:
    transport = accepting(reset(), refusal(409, "AlreadyExists"), stored(1, "2025-11-21T09:00:00Z"))
    async with recording(transport) as recorder:
        tell(recorder)
        assert await recorder.flush(60)
    (_, _, first), (_, _, second), (method, _, looked) = sent(transport)
    assert first["metadata"]["name"] == second["metadata"]["name"]
    assert (method, "count" in looked) == ("PATCH", False)


async def test_a_server_that_does_not_answer_is_tried_twelve_times_and_a_named_event_for_ever() -> None:
    transport = ScriptedTransport(lambda _: reset())
    async with recording(transport) as recorder:
        tell(recorder)
        assert not await recorder.flush(100)
        assert await recorder.flush(100)
        assert len(transport.requests) == 12
        assert all(10 <= gap <= 12 for gap in transport.gaps)
        tell(recorder, name="hvup.phase-1")
        assert not await recorder.flush(1000)


async def test_what_is_recorded_while_the_server_is_away_waits_once() -> None:
    transport = ScriptedTransport()
    transport.others.extend([1.0, reset(), answer({})])
    async with recording(transport) as recorder:
        tell(recorder)
        await asyncio.sleep(0.5)
        tell(recorder)
        assert await recorder.flush(60)
    assert [body["count"] for _, _, body in sent(transport)][-1] == 2


async def test_an_event_that_is_forbidden_for_a_moment_gets_through() -> None:
    transport = accepting(refusal(403, "Forbidden"))
    async with recording(transport) as recorder:
        tell(recorder, name="hvup.phase-1")
        assert await recorder.flush(15)
    assert [body["metadata"]["name"] for _, _, body in sent(transport)] == ["hvup.phase-1"] * 2


@pytest.mark.parametrize("name", [pytest.param("", id="a counted one"), pytest.param("hvup.phase-1", id="a named one")])
async def test_an_event_that_stays_forbidden_is_tried_twelve_times(name: str) -> None:
    transport = ScriptedTransport(lambda _: refusal(403, "Forbidden"))
    async with recording(transport) as recorder:
        tell(recorder, name=name)
        assert await recorder.flush(200)
    assert len(transport.requests) == 12


async def test_a_refused_event_is_dropped() -> None:
    transport = accepting(refusal(422, "Invalid"))
    async with recording(transport) as recorder:
        tell(recorder)
        assert await recorder.flush(1)
        tell(recorder, reason="Other")
        assert await recorder.flush(1)
    assert len(transport.requests) == 2


async def test_more_than_can_wait_is_dropped_but_nothing_named() -> None:
    random = Random(1)
    client = Client(accepting(), user_agent="test", random=random)
    recorder = EventRecorder(client, component="x", now=lambda: START, random=random)
    for number in range(QUEUE_SIZE + 10):
        tell(recorder, about=node(f"n{number}"))
    tell(recorder, name="kept")
    assert len(recorder._queue) == QUEUE_SIZE + 1
    assert not await recorder.flush(1)


async def test_only_the_latest_series_are_remembered() -> None:
    random = Random(1)
    client = Client(accepting(), user_agent="test", random=random)
    recorder = EventRecorder(client, component="x", now=lambda: START, random=random)
    for number in range(5000):
        tell(recorder, about=node(f"n{number}"))
    assert len(recorder._correlator._series) == 4096
    assert all("spec" not in series.about for series in recorder._queue)
