"""Faults, counts and kills in front of a server."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hack.faults.counts import NO_ANSWER
from hack.faults.middleware import Middleware
from hack.faults.rules import (
    Cut,
    Delay,
    Duplicate,
    Expire,
    LoseAnswer,
    LoseRequest,
    Match,
    Refuse,
    Rule,
    Stall,
    Thin,
)
from tests.support.server.apiserver import make_server
from tests.support.server.raw_client import RawClient
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from hack.apiserver.call import Call
    from hack.faults.rules import Action
    from upgrade_manager.kube.transport import Response

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def faults() -> Middleware:
    return Middleware(make_server(), random=Random(1))


@pytest.fixture
def wire(faults: Middleware) -> RawClient:
    return RawClient(faults, headers={"user-agent": "tester/1"})


def arm(faults: Middleware, action: Action, **match: Any) -> None:
    faults.add(Rule(match=Match(**match), action=action))


async def fill(wire: RawClient, names: str) -> None:
    for name in names:
        await wire.post(MAPS, {"metadata": {"name": name}})


async def test_requests_without_rules_pass_and_are_counted(faults: Middleware, wire: RawClient) -> None:
    await fill(wire, "ab")
    await wire.get(f"{MAPS}/a")
    await wire.get(f"{MAPS}/missing")
    async with wire.watch(MAPS) as events:
        assert await events.take(2) == [("ADDED", "a"), ("ADDED", "b")]
    assert faults.counts.total(verb="create", resource="configmaps", code=201) == 2
    assert faults.counts.total(user_agent="tester/1") == 5
    assert faults.counts.total(code=404) == 1
    assert faults.counts.total(verb="watch") == 1
    assert [count for _, count in faults.counts] == [2, 1, 1, 1]
    faults.counts.clear()
    assert faults.counts.total() == 0


async def test_delay_is_reproducible(faults: Middleware, wire: RawClient) -> None:
    arm(faults, Delay(least=1, most=3), verbs=("get",))
    loop = asyncio.get_running_loop()
    await wire.get(f"{MAPS}/a")
    assert loop.time() == pytest.approx(1 + 2 * Random(1).random())


async def test_refusal_has_status_and_headers_without_effect(faults: Middleware, wire: RawClient) -> None:
    refuse = Refuse(status=429, reason="TooManyRequests", message="slow down", headers={"retry-after": "2"})
    arm(faults, refuse, verbs=("create", "watch"))
    refused = await wire.post(MAPS, {"metadata": {"name": "a"}})
    assert (refused.status, refused.headers["retry-after"]) == (429, "2")
    assert (refused.body["kind"], refused.body["reason"]) == ("Status", "TooManyRequests")
    async with faults.open(wire.request("GET", MAPS, watch="1")) as stream:
        assert stream.status == 429
        assert json.loads(b"".join([chunk async for chunk in stream.chunks()]))["message"] == "slow down"
    assert (await wire.get(MAPS)).names == []
    assert faults.writes == 0


@pytest.mark.parametrize(("action", "stored"), [(LoseRequest(), []), (LoseAnswer(), ["a"])], ids=["request", "answer"])
async def test_lost_message_raises_transient(
    faults: Middleware, wire: RawClient, action: Action, stored: list[str]
) -> None:
    arm(faults, action, verbs=("create",))
    with pytest.raises(Transient):
        await wire.post(MAPS, {"metadata": {"name": "a"}})
    assert (await wire.get(MAPS)).names == stored
    assert faults.counts.total(verb="create", code=NO_ANSWER) == 1


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        pytest.param({}, [0, 1, 2, 3], id="all"),
        pytest.param({"nth": 2}, [1, 2, 3], id="from the second on"),
        pytest.param({"verbs": ("get",)}, [], id="another verb"),
        pytest.param({"resource": "config*"}, [0, 1, 2, 3], id="a glob"),
        pytest.param({"resource": "secrets"}, [], id="another resource"),
        pytest.param({"subresource": "status"}, [], id="a subresource"),
        pytest.param({"probability": 0.0}, [], id="never"),
    ],
)
async def test_rule_affects_matching_requests(
    faults: Middleware, wire: RawClient, match: dict[str, Any], hit: list[int]
) -> None:
    refusal = Rule(match=Match(**match), action=Refuse(status=500))
    faults.add(refusal)
    statuses = [(await wire.post(MAPS, {"metadata": {"name": f"n{index}"}})).status for index in range(4)]
    assert [index for index, status in enumerate(statuses) if status == 500] == hit
    faults.remove(refusal)
    assert (await wire.post(MAPS, {"metadata": {"name": "z"}})).status == 201


EVENTS = ["ADDED", "ADDED", "MODIFIED", "DELETED"]
DOUBLED = [event for event in [*EVENTS, "BOOKMARK"] for _ in range(2)]


@pytest.mark.parametrize(
    ("action", "events", "seconds"),
    [
        pytest.param(Cut(events=2), ["ADDED", "ADDED"], 0, id="cut after events"),
        pytest.param(Cut(seconds=7), EVENTS, 7, id="cut after seconds"),
        pytest.param(Expire(events=1), ["ADDED", "ERROR"], 0, id="expires"),
        pytest.param(Stall(events=1, seconds=20), EVENTS, 20, id="stalls and resumes"),
        pytest.param(Thin(probability=1), ["BOOKMARK"], 9, id="loses all events"),
        pytest.param(
            Thin(probability=1, types=("MODIFIED",)), ["ADDED", "ADDED", "DELETED", "BOOKMARK"], 9, id="loses some"
        ),
        pytest.param(Duplicate(probability=1), DOUBLED, 9, id="duplicates"),
    ],
)
async def test_watch_is_disturbed(
    faults: Middleware, wire: RawClient, action: Action, events: list[str], seconds: float
) -> None:
    arm(faults, action)
    async with wire.watch(MAPS, timeoutSeconds="9", allowWatchBookmarks="true") as stream:
        await fill(wire, "ab")
        await wire.patch(f"{MAPS}/a", {"data": {"x": "1"}})
        await wire.delete(f"{MAPS}/b")
        seen = await stream.rest()
    assert [event["type"] for event in seen] == events
    assert asyncio.get_running_loop().time() == pytest.approx(seconds)
    assert all(event["object"]["code"] == 410 for event in seen if event["type"] == "ERROR")


@pytest.mark.parametrize("torn", [False, True], ids=["between lines", "inside of a line"])
async def test_watch_breaks(faults: Middleware, wire: RawClient, torn: bool) -> None:  # noqa: FBT001
    arm(faults, Cut(events=1, clean=False, torn=torn))
    await fill(wire, "ab")
    async with wire.watch(MAPS) as events:
        assert await events.take(1) == [("ADDED", "a")]
        with pytest.raises(Transient):
            await events.next()


async def test_torn_line_is_not_an_event_to_lose(faults: Middleware, wire: RawClient) -> None:
    arm(faults, Cut(events=1, clean=False, torn=True))
    arm(faults, Thin(probability=1, types=("BOOKMARK",)))
    await fill(wire, "ab")
    async with wire.watch(MAPS) as events:
        assert await events.take(1) == [("ADDED", "a")]
        with pytest.raises(Transient):
            await events.next()


class Killed(BaseException):
    """The process ends here."""


class Killer:
    def __init__(self, number: int, *, before: bool) -> None:
        self._number = number
        self._before = before
        self.calls: list[Call] = []

    async def before(self, number: int, call: Call) -> None:
        self.calls.append(call)
        if self._before and number == self._number:
            raise Killed

    async def after(self, number: int, call: Call, response: Response) -> None:  # noqa: ARG002
        if not self._before and number == self._number:
            raise Killed


@pytest.mark.parametrize(("before", "stored"), [(True, ["a"]), (False, ["a", "b"])], ids=["before", "after"])
async def test_client_is_killed_around_its_second_write(wire: RawClient, before: bool, stored: list[str]) -> None:  # noqa: FBT001
    killer = Killer(2, before=before)
    faults = Middleware(wire.transport, random=Random(1))
    faults.hook = killer
    client = RawClient(faults)
    await client.post(MAPS, {"metadata": {"name": "a"}})
    await client.get(MAPS)
    await client.post(MAPS, {"metadata": {"name": "x"}}, dryRun="All")
    with pytest.raises(Killed):
        await client.post(MAPS, {"metadata": {"name": "b"}})
    assert (await wire.get(MAPS)).names == stored
    assert [call.verb for call in killer.calls] == ["create", "create"]
    assert faults.writes == 2
