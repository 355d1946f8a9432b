from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.support.server.kube_server import Reply, ScriptedTransport, background, failure, node, reset, success
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.events import QUEUE_SIZE, EventRecorder

START = datetime(2025, 11, 21, 9, 0, 0, 500_000, tzinfo=UTC)
NOW = "2025-11-21T09:00:00Z"
PLAN = {
    "apiVersion": "management.harvesterhci.io/v1beta1",
    "kind": "UpgradePlan",
    "metadata": {"name": "hvup", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}},
    "spec": {"secret": "x"},
}

EVENTS = "/api/v1/namespaces/default/events"
CONFLICT = failure(409, "AlreadyExists")


def accepting(*replies: Reply) -> ScriptedTransport:
    """Accept every request after the scripted replies."""
    first = list(replies)
    return ScriptedTransport(lambda _: first.pop(0) if first else success({}))


def recorder_of(
    transport: ScriptedTransport, *, component: str = "upgradeplan-controller", seed: int = 1, **options: Any
) -> EventRecorder:
    random = Random(seed)
    client = Client(transport, user_agent="test", random=random)
    return EventRecorder(client, component=component, now=_now, random=random, **options)


def _now() -> datetime:
    return START + timedelta(seconds=loop_time())


@asynccontextmanager
async def recording(transport: ScriptedTransport, **options: Any) -> AsyncIterator[EventRecorder]:
    recorder = recorder_of(transport, **options)
    async with background(recorder.run()):
        yield recorder


def record(recorder: EventRecorder, message: str = "it failed", **more: Any) -> None:
    recorder.record(**{"about": PLAN, "type_": "Warning", "reason": "Failed", "message": message, **more})


def sent(transport: ScriptedTransport) -> list[tuple[str, str, Any]]:
    return [(request.method, request.path, json.loads(request.body)) for request in transport.requests]


async def sent_for(*events: dict[str, Any], replies: tuple[Reply, ...] = (), **options: Any) -> list[Any]:
    """Record the events, each when the one before is sent; return the requests."""
    transport = accepting(*replies)
    async with recording(transport, **options) as recorder:
        for event in events:
            record(recorder, **event)
            assert await recorder.flush(60)
    return sent(transport)


def counts(requests: list[tuple[str, str, Any]]) -> list[tuple[str, str, int]]:
    return [(method, body["message"], body["count"]) for method, _, body in requests]


async def test_event_of_a_cluster_scoped_object_is_in_default() -> None:
    ((method, path, body),) = await sent_for({"message": "x" * 2000})
    assert (method, path) == ("POST", EVENTS)
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
        "firstTimestamp": NOW,
        "lastTimestamp": NOW,
        "count": 1,
    }


async def test_event_of_a_namespaced_object_is_in_its_namespace() -> None:
    job = {"kind": "Job", "metadata": {"name": "j" * 253, "namespace": "ns"}}
    ((_, path, body),) = await sent_for({"about": job})
    assert path == "/api/v1/namespaces/ns/events"
    assert body["involvedObject"]["namespace"] == "ns"
    assert len(body["metadata"]["name"]) <= 253


async def test_event_has_the_annotations_of_its_first_occurrence() -> None:
    annotations = iter([{"id": "4f1c"}, {}])
    transport = accepting()
    async with recording(transport, annotations=lambda: next(annotations)) as recorder:
        record(recorder)
        record(recorder, "another", reason="Other")
        await recorder.flush(60)
    assert [body["metadata"].get("annotations") for _, _, body in sent(transport)] == [{"id": "4f1c"}, None]


async def test_repetitions_patch_the_count() -> None:
    async with recording(transport := accepting()) as recorder:
        for _ in range(3):
            record(recorder)
            assert await recorder.flush(1)
            await asyncio.sleep(10)
    (_, _, created), second, third = sent(transport)
    assert created["count"] == 1
    assert second[:2] == ("PATCH", f"{EVENTS}/{created['metadata']['name']}")
    assert second[2] == {"count": 2, "lastTimestamp": "2025-11-21T09:00:10Z", "message": "it failed"}
    assert third[2]["count"] == 3


async def test_repetitions_before_the_first_send_are_one_request() -> None:
    async with recording(transport := accepting()) as recorder:
        for _ in range(3):
            record(recorder)
        assert await recorder.flush(1)
    assert counts(sent(transport)) == [("POST", "it failed", 3)]


async def test_similar_messages_are_combined_from_the_tenth_on() -> None:
    async with recording(transport := accepting()) as recorder:
        for number in range(12):
            record(recorder, f"message of node-{number}")
            assert await recorder.flush(1)
        await asyncio.sleep(601)
        record(recorder, "much later")
        assert await recorder.flush(1)
    assert counts(sent(transport))[8:] == [
        ("POST", "message of node-8", 1),
        ("POST", "(combined from similar events): message of node-9", 1),
        ("PATCH", "(combined from similar events): message of node-10", 2),
        ("PATCH", "(combined from similar events): message of node-11", 3),
        ("POST", "much later", 1),
    ]


async def test_volatile_numbers_do_not_make_another_event() -> None:
    messages = [f"10.0.0.1:4000{number}: no response within {number}.5 s" for number in range(3)]
    requests = await sent_for(*({"message": message} for message in messages))
    assert counts(requests) == [("POST", messages[0], 1), ("PATCH", messages[1], 2), ("PATCH", messages[2], 3)]


async def test_event_that_an_earlier_process_sent_is_not_repeated() -> None:
    stored = success({"count": 4, "firstTimestamp": "2025-11-21T08:00:00Z"})
    known, *repeated = await sent_for({"is_known": True}, {}, replies=(CONFLICT, CONFLICT, stored))
    assert (known[0], known[2]["count"]) == ("POST", 1)
    assert [(verb, body.get("count")) for verb, _, body in repeated] == [("POST", 1), ("PATCH", None), ("PATCH", 5)]


async def test_event_that_an_earlier_process_did_not_send_is_created() -> None:
    created, repeated = await sent_for({"is_known": True}, {})
    assert (created[0], created[2]["count"]) == ("POST", 1)
    assert (repeated[0], repeated[2]["count"]) == ("PATCH", 2)


async def test_flood_is_rate_limited() -> None:
    async with recording(transport := accepting()) as recorder:
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


async def test_named_event_is_sent_once() -> None:
    transport = accepting()
    names = ["hvup.phase-1", *[f"hvup.n{number}" for number in range(60)]]
    async with recording(transport) as recorder:
        for name in ["hvup.phase-1", "hvup.phase-1", *names]:
            record(recorder, name=name)
        assert await recorder.flush(1)
        record(recorder, name="hvup.phase-1")
        assert await recorder.flush(1)
    assert [body["metadata"]["name"] for _, _, body in sent(transport)] == names


async def test_named_event_that_exists_counts_as_sent() -> None:
    assert len(await sent_for({"name": "hvup.phase-1"}, replies=(CONFLICT,))) == 1


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
@pytest.mark.parametrize("first", ["2025-11-21T08:00:00Z", NOW], ids=["earlier", "now"])
async def test_count_of_an_earlier_process_continues(count: object, following: list[int], first: str) -> None:
    requests = await sent_for({}, {}, replies=(CONFLICT, stored(count, first)))
    (_, _, created), (_, path, latest), *patched = requests
    assert path == f"{EVENTS}/{created['metadata']['name']}"
    assert latest == {"lastTimestamp": NOW, "message": "it failed"}
    assert [(method, body["count"]) for method, _, body in patched] == [("PATCH", count) for count in following]


EXPIRED = failure(404, "NotFound")
#: A patch that leaves the count alone.
UPDATE = ("PATCH", None)


@pytest.mark.parametrize(
    ("times", "replies", "sends"),
    [
        pytest.param(2, [success({}), EXPIRED], [("POST", 1), ("PATCH", 2), ("POST", 2)], id="expired"),
        pytest.param(1, [CONFLICT, EXPIRED], [("POST", 1), UPDATE, ("POST", 1)], id="expired during its update"),
        pytest.param(1, [CONFLICT, EXPIRED, CONFLICT], [("POST", 1), UPDATE, ("POST", 1)], id="created by another"),
        pytest.param(1, [reset(), CONFLICT, stored(1, NOW)], [("POST", 1), ("POST", 1), UPDATE], id="created unseen"),
        pytest.param(
            1, [CONFLICT, stored(4), reset()], [("POST", 1), UPDATE, ("PATCH", 5), ("PATCH", 5)], id="counted unseen"
        ),
    ],
)
async def test_no_repetition_is_lost_or_counted_twice(
    times: int, replies: list[Reply], sends: list[tuple[str, int | None]]
) -> None:
    requests = await sent_for(*({},) * times, replies=tuple(replies))
    assert [(method, body.get("count")) for method, _, body in requests] == sends
    assert len({body["metadata"]["name"] for method, _, body in requests if method == "POST"}) == 1


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param({}, True, id="the same"),
        pytest.param({"message": "it failed after 17.2 s"}, True, id="other volatile numbers"),
        pytest.param({"message": "it failed on node-3"}, False, id="another message"),
        pytest.param({"reason": "Other"}, False, id="another reason"),
        pytest.param({"type_": "Normal"}, False, id="another type"),
        pytest.param({"component": "other"}, False, id="another component"),
        pytest.param({"about": {**PLAN, "metadata": {"name": "hvup", "uid": "v"}}}, False, id="another uid"),
        pytest.param({"about": {**PLAN, "metadata": {"name": "hvup", "uid": "u"}}}, True, id="another resourceVersion"),
    ],
)
async def test_equal_events_of_two_processes_have_one_name(changed: dict[str, Any], *, same: bool) -> None:
    changed = {"message": "it failed after 3 s", "component": "one", **changed}
    ((_, _, first),) = await sent_for({"message": "it failed after 3 s"}, component="one")
    ((_, _, second),) = await sent_for(changed, component=changed.pop("component"), seed=2)
    assert (first["metadata"]["name"] == second["metadata"]["name"]) is same


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
    assert counts(sent(transport))[-1][2] == 2


async def test_event_that_is_forbidden_at_first_is_retried() -> None:
    requests = await sent_for({"name": "hvup.phase-1"}, replies=(failure(403, "Forbidden"),))
    assert [body["metadata"]["name"] for _, _, body in requests] == ["hvup.phase-1"] * 2


@pytest.mark.parametrize("name", [pytest.param("", id="a counted one"), pytest.param("hvup.phase-1", id="a named one")])
async def test_event_that_stays_forbidden_is_tried_twelve_times(name: str) -> None:
    transport = ScriptedTransport(lambda _: failure(403, "Forbidden"))
    async with recording(transport) as recorder:
        record(recorder, name=name)
        assert await recorder.flush(200)
    assert len(transport.requests) == 12


async def test_invalid_event_is_dropped() -> None:
    assert len(await sent_for({}, {"reason": "Other"}, replies=(failure(422, "Invalid"),))) == 2


async def test_full_queue_drops_all_but_named_events() -> None:
    recorder = recorder_of(accepting())
    for number in range(QUEUE_SIZE + 10):
        record(recorder, about=node(f"n{number}"))
    record(recorder, name="kept")
    assert len(recorder._queue) == QUEUE_SIZE + 1
    assert not await recorder.flush(1)


async def test_least_recently_used_series_are_evicted() -> None:
    recorder = recorder_of(accepting())
    for number in range(5000):
        record(recorder, about=node(f"n{number}"))
    assert len(recorder._correlator._series) == 4096
    assert all("spec" not in series.about for series in recorder._queue)
