"""The history of a plan in its ConfigMap: written rarely, continued by every process, and never in the way."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from hack.faults.middleware import Middleware
from hack.faults.rules import Match, Refuse, Rule
from hack.virtual_time import virtual_now
from tests.support.cluster.harvester import Harvester
from upgrade_manager.api.history import ENDED, UPGRADE, VERSIONS, WARNINGS, rows_of
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_PLAN_UID
from upgrade_manager.api.names import HISTORY_SUFFIX, history_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, NODES
from upgrade_manager.pipeline.history import LONGEST, SHORTEST, History

KIND: dict[str, Any] = {"kind": "UpgradePlan", "apiVersion": "management.harvesterhci.io/v1beta1"}
REFUSED = Match(resource="configmaps")
ENTRY = {"phase": "Failed", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}


def history(cluster: Harvester) -> History:
    return History(cluster.client, now=virtual_now)


def add(to: History, plan: Object, reason: str, *, type_: str = "Normal", id_: str = "", **more: Any) -> None:
    to.add(plan, type_=type_, reason=reason, message=f"{reason} happens", id_=id_, at=virtual_now(), **more)


async def stored(cluster: Harvester) -> Any:
    return await cluster.find(CONFIG_MAPS, "up-history", HARVESTER_SYSTEM)


async def texts(cluster: Harvester) -> list[str]:
    return [f"{row.reason} x{row.count}" for row in rows_of(objects.mapping(await stored(cluster), "data"))]


@pytest.fixture
async def plan(cluster: Harvester) -> Object:
    return {**await cluster.plan(), **KIND}


@pytest.mark.rule("pipeline: the history of a plan is an object of the plan, which goes with it")
async def test_history_belongs_to_its_plan(cluster: Harvester, plan: Object) -> None:
    found = history(cluster)
    add(found, plan, "A")
    await found.write(plan)
    written = await stored(cluster)
    assert objects.labels(written)[LABEL_PLAN_UID] == objects.uid(plan) == objects.owner_uid(written)


async def test_rows_wait_until_the_oldest_is_old(cluster: Harvester, plan: Object) -> None:
    found = history(cluster)
    add(found, plan, "A")
    await asyncio.sleep(LONGEST.total_seconds() - 1)
    await found.write_due(plan)
    assert await stored(cluster) is None
    await asyncio.sleep(1)
    assert virtual_now() >= found.due
    await found.write_due(plan)
    assert await texts(cluster) == ["A x1"]
    assert found.due > virtual_now()


async def test_new_warning_is_written_soon(cluster: Harvester, plan: Object) -> None:
    found = history(cluster)
    for reason in ("A", "B"):
        add(found, plan, reason, type_="Warning")
        await found.write_due(plan)
    assert await texts(cluster) == ["A x1"]
    await asyncio.sleep(SHORTEST.total_seconds())
    await found.write_due(plan)
    assert sorted(await texts(cluster)) == ["A x1", "B x1"]


async def test_repeated_row_is_counted_and_a_named_one_is_not(cluster: Harvester, plan: Object) -> None:
    found = history(cluster)
    for _ in range(3):
        add(found, plan, "Counted", type_="Warning")
        add(found, plan, "Named", id_="12.x")
    add(found, plan, "Counted", type_="Warning", is_known=True)
    await found.write(plan)
    assert sorted(await texts(cluster)) == ["Counted x3", "Named x1"]


async def test_next_process_continues(cluster: Harvester, plan: Object) -> None:
    first, second = history(cluster), history(cluster)
    for one in (first, second):
        add(one, plan, "Counted", type_="Warning")
        add(one, plan, "Named", id_="12.x")
        add(one, plan, "Milestone", id_="13.x", node="node-0")
        await one.write(plan)
        await asyncio.sleep(60)
    assert sorted(await texts(cluster)) == ["Counted x2", "Milestone x1", "Named x1"]
    assert set((await stored(cluster))["data"]) == {UPGRADE, WARNINGS, "node.node-0"}


async def test_write_of_another_process_is_kept(cluster: Harvester, plan: Object) -> None:
    first, second = history(cluster), history(cluster)
    add(first, plan, "Begin", id_="00.x")
    await first.write(plan)
    add(second, plan, "A", id_="12.x")
    await second.write(plan)
    add(first, plan, "B", id_="13.x")
    await first.write(plan)
    assert await texts(cluster) == ["Begin x1", "A x1", "B x1"]


async def test_history_that_was_deleted_is_written_again(cluster: Harvester, plan: Object) -> None:
    found = history(cluster)
    add(found, plan, "A", id_="12.x")
    await found.write(plan)
    await cluster.client.delete(CONFIG_MAPS, "up-history", namespace=HARVESTER_SYSTEM)
    add(found, plan, "B", id_="13.x")
    await found.write(plan)
    assert await texts(cluster) == ["A x1", "B x1"]


async def test_history_of_an_earlier_plan_is_replaced(cluster: Harvester, plan: Object) -> None:
    earlier = {**plan, "metadata": {**plan["metadata"], "uid": "another"}}
    for one in (earlier, plan):
        found = history(cluster)
        add(found, one, f"Of{objects.uid(one)[:3]}")
        await found.write(one)
    assert await texts(cluster) == [f"Of{objects.uid(plan)[:3]} x1"]


async def test_config_map_of_a_user_stays(cluster: Harvester, plan: Object) -> None:
    metadata = {"name": "up-history", "namespace": HARVESTER_SYSTEM}
    await cluster.put(CONFIG_MAPS, {"metadata": metadata, "data": {"a": "b"}})
    found = history(cluster)
    add(found, plan, "A")
    await found.write(plan)
    await found.finish(plan)
    assert (await stored(cluster))["data"] == {"a": "b"}


async def test_event_of_another_object_has_no_row(cluster: Harvester, plan: Object) -> None:
    found = history(cluster)
    add(found, {**plan, "kind": "Cluster"}, "A")
    assert found.due > virtual_now() + LONGEST
    await found.write(plan)
    assert await stored(cluster) is None


def refusing(cluster: Harvester, status: int) -> tuple[History, Middleware]:
    """Return a history whose ConfigMap the API server refuses, until the rule is removed."""
    middleware = Middleware(cluster.server, random=Random(0))
    middleware.add(Rule(match=REFUSED, action=Refuse(status=status, reason="Refused", message="no")))
    return History(Client(middleware, user_agent="test", random=Random(0)), now=virtual_now), middleware


@pytest.mark.rule("pipeline: a history that cannot be written never stops an upgrade")
async def test_refusal_is_not_an_error(cluster: Harvester, plan: Object) -> None:
    found, _ = refusing(cluster, 403)
    add(found, plan, "A")
    await found.write(plan)
    await found.finish(plan)
    assert await stored(cluster) is None


async def ended(cluster: Harvester) -> Object:
    """Return a plan that has failed before its only node."""
    status = {"currentPhase": "Failed", "phaseTransitionTimestamps": [ENTRY]}
    states = {"nodeUpgradeStatuses": {"node-0": {"state": "ImagePreloaded"}}}
    plan = {**await cluster.plan(status=status | states), **KIND}
    info = {"nodeInfo": {"osImage": "Harvester v1.7.1", "kubeletVersion": "v1.34"}}
    await cluster.put(NODES, {"metadata": {"name": "node-0"}}, status=info)
    return plan


async def test_end_is_repeated_until_the_history_is_complete(cluster: Harvester) -> None:
    plan = await ended(cluster)
    found, middleware = refusing(cluster, 503)
    with pytest.raises(Transient):
        await found.finish(plan)
    middleware.remove(Rule(match=REFUSED, action=Refuse(status=503, reason="Refused", message="no")))
    await found.finish(plan)
    data = (await stored(cluster))["data"]
    assert data[ENDED] == ENTRY["phaseTransitionTimestamp"]
    assert "Harvester v1.7.1" in data[VERSIONS]


RUNNING = {"currentPhase": "NodeUpgrading", "phaseTransitionTimestamps": []}


@pytest.mark.rule("pipeline: a history stays complete until the next attempt begins")
@pytest.mark.parametrize(
    ("status", "kept"),
    [pytest.param({}, {ENDED, VERSIONS}, id="it waits"), pytest.param(RUNNING, set(), id="it has begun")],
)
async def test_history_is_complete_until_the_next_attempt(cluster: Harvester, status: Object, kept: set[str]) -> None:
    plan = await ended(cluster)
    for _ in range(2):
        process = history(cluster)
        await process.finish(plan)
        before = (await stored(cluster))["data"]
        # The versions of the end stay.
        later = MergePatch({"status": {"nodeInfo": {"osImage": "Harvester v1.9.0"}}})
        await cluster.client.patch(NODES, "node-0", later, subresource="status")
    add(process, plan, "ConcurrentUpgradeBlocked", type_="Warning", id_="00.x")
    await process.write({**plan, "status": {**plan["status"], **status}})
    data = (await stored(cluster))["data"]
    assert "ConcurrentUpgradeBlocked" in data[WARNINGS]
    assert {key: data[key] for key in (ENDED, VERSIONS) if key in data} == {key: before[key] for key in kept}
    assert "Harvester v1.7.1" in before[VERSIONS]


@pytest.mark.parametrize(
    ("reason", "rows", "is_finished"),
    [
        pytest.param("Refused", 1, True, id="refused"),
        pytest.param("Refused", 0, False, id="finished before"),
        pytest.param("Failed", 1, False, id="failed"),
    ],
)
async def test_refusal_finishes_the_history(cluster: Harvester, reason: str, rows: int, *, is_finished: bool) -> None:
    plan = await ended(cluster)
    plan["status"]["conditions"] = [{"type": "Progressing", "status": "False", "reason": reason}]
    process = history(cluster)
    for _ in range(rows):
        add(process, plan, "UpgradeFailed", type_="Warning", id_="99.x")
    await process.finish_refusal(plan)
    found = await stored(cluster)
    assert (found is not None and ENDED in found["data"]) == is_finished


@pytest.mark.parametrize("name", ["up", "u" * 245, "u" * 253, "a." * 126 + "b"])
def test_name_is_valid_and_has_the_suffix_that_the_policy_knows(name: str) -> None:
    found = history_config_map(name)
    assert found.endswith(HISTORY_SUFFIX)
    assert len(found) <= 253
    assert history_config_map(name + "x") != found
