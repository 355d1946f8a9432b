from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.cluster.harvester import Harvester
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import list_all_pages
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SERVICES, Resource
from upgrade_manager.pipeline.informers import (
    JUST_OPENED,
    SYNC_TIMEOUT,
    WRITE_TIMEOUT,
    Informers,
    InformerSpec,
    PlanInformers,
    Write,
)

ALL_NODES, ALL_JOBS = InformerSpec(resource=NODES), InformerSpec(resource=JOBS, namespace="harvester-system")


async def test_watched_store_is_current_and_shared(cluster: Harvester, informers: PlanInformers) -> None:
    await cluster.nodes("n1")
    store = await informers.watch(ALL_NODES)
    await cluster.nodes("n2")
    await asyncio.sleep(1)
    assert [node["metadata"]["name"] for node in store.list()] == ["n1", "n2"]
    assert await informers.watch(InformerSpec(resource=NODES)) is store


async def test_unused_informers_are_pruned(informers: PlanInformers) -> None:
    await informers.watch(ALL_NODES)
    await informers.watch(ALL_JOBS)
    await informers.prune()
    assert informers.specs == {ALL_NODES, ALL_JOBS}
    await informers.watch(ALL_JOBS)
    await informers.prune()
    assert informers.specs == {ALL_JOBS}
    await informers.prune()
    assert informers.specs == frozenset()


async def test_permanent_informer_is_kept_until_stop(informers: PlanInformers) -> None:
    permanent = InformerSpec(resource=NODES, permanent=True)
    await informers.watch(permanent)
    for _ in range(2):
        await informers.prune()
    assert informers.specs == {permanent}
    await informers.stop()
    assert informers.specs == frozenset()


async def test_failed_list_is_reported_after_the_timeout(informers: PlanInformers) -> None:
    things = Resource(group="example.org", version="v1", plural="things", kind="Thing")
    began = asyncio.get_running_loop().time()
    with pytest.raises(Transient, match=r"cannot list things\.example\.org in namespace x: .*404"):
        await informers.watch(InformerSpec(resource=things, namespace="x"))
    assert asyncio.get_running_loop().time() - began == pytest.approx(SYNC_TIMEOUT)


async def test_wait_for_returns_when_the_store_has_the_write(cluster: Harvester, informers: PlanInformers) -> None:
    store = await informers.watch(ALL_NODES)
    await cluster.nodes("n1")
    version = (await cluster.find(NODES, "n1"))["metadata"]["resourceVersion"]
    await informers.wait_for([Write(resource=NODES, namespace="", resource_version=version)])
    found = store.get("n1")
    assert found is not None
    assert found["metadata"]["resourceVersion"] == version


async def test_wait_for_waits_for_the_newest_write(informers: PlanInformers) -> None:
    await informers.watch(ALL_NODES)
    # The responses to concurrent writes arrive in any order, here the newest first.
    writes = [Write(resource=NODES, namespace="", resource_version=version) for version in ("999999999", "1")]
    assert not await informers.wait_for(writes)


async def test_wait_for_is_bounded_and_skips_unwatched_writes(informers: PlanInformers) -> None:
    never = Write(resource=NODES, namespace="", resource_version="999999999")
    other = Write(resource=JOBS, namespace="cattle-system", resource_version="999999999")
    await informers.watch(ALL_NODES)
    await informers.watch(ALL_JOBS)
    began = asyncio.get_running_loop().time()
    await informers.wait_for([other])
    assert asyncio.get_running_loop().time() == began
    await informers.wait_for([never])
    assert asyncio.get_running_loop().time() - began <= WRITE_TIMEOUT + 0.1


async def test_dropping_a_plan_keeps_informers_of_others(cluster: Harvester) -> None:
    async with asyncio.TaskGroup() as group:
        plans = Informers(group, lambda _, spec: Informer(cluster.client, spec, random=Random(1)))
        await plans.of("a", uid="a").watch(ALL_NODES)
        await plans.of("b", uid="b").watch(ALL_NODES)
        await plans.drop("a")
        await plans.drop("a")
        assert plans.of("b", uid="b").specs == {ALL_NODES}
        assert plans.of("a", uid="a").specs == frozenset()
        await plans.stop()


async def test_next_plan_of_a_name_has_separate_informers(cluster: Harvester) -> None:
    async with asyncio.TaskGroup() as group:
        plans = Informers(group, lambda _, spec: Informer(cluster.client, spec, random=Random(1)))
        earlier = plans.of("a", uid="1")
        await plans.drop("a", unless="1")
        assert plans.of("a", uid="1") is earlier
        await plans.drop("a", unless="2")
        assert plans.of("a", uid="2") is not earlier
        await plans.stop()


@pytest.mark.parametrize(
    ("spec", "resource", "namespace", "covered"),
    [
        pytest.param(ALL_NODES, NODES, "", True, id="a cluster's kind"),
        pytest.param(ALL_JOBS, JOBS, "harvester-system", True, id="its namespace"),
        pytest.param(ALL_JOBS, JOBS, "cattle-system", False, id="another namespace"),
        pytest.param(InformerSpec(resource=JOBS), JOBS, "cattle-system", True, id="all namespaces"),
        pytest.param(ALL_JOBS, SERVICES, "harvester-system", False, id="another kind"),
    ],
)
def test_spec_covers_its_kind_in_its_namespace(
    spec: InformerSpec, resource: Any, namespace: str, *, covered: bool
) -> None:
    assert spec.covers(resource, namespace) is covered


async def test_store_is_confirmed_once_it_has_caught_up(cluster: Harvester, informers: PlanInformers) -> None:
    await cluster.nodes("n1")
    await informers.watch(ALL_NODES)
    await cluster.nodes("n2")
    # The event of n2 arrives while the stores are compared.
    await informers.confirm(cluster.client, ALL_NODES)
    found = (await informers.watch(ALL_NODES)).list()
    assert [node["metadata"]["name"] for node in found] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("size", "reported", "limits"),
    [
        pytest.param(2, True, [2], id="one page: all are compared"),
        pytest.param(1, True, [1], id="more objects, and the watch has an event of that version"),
        pytest.param(1, False, [1, 1, 1], id="no event: all pages are compared"),
    ],
)
async def test_versions_of_many_objects_are_confirmed_by_a_later_event(
    cluster: Harvester,
    informers: PlanInformers,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    *,
    reported: bool,
    limits: list[int],
) -> None:
    monkeypatch.setattr("upgrade_manager.pipeline.informers.PAGE_SIZE", size)
    monkeypatch.setattr("upgrade_manager.pipeline.informers.list_all_pages", partial(list_all_pages, limit=size))
    await cluster.nodes("n1", "n2")
    await informers.watch(ALL_NODES)
    # The API server's newest version is that of another object.
    await cluster.put(SERVICES, {"metadata": {"name": "other", "namespace": "default"}, "spec": {}})
    listed = Mock(wraps=cluster.client.list_page)
    monkeypatch.setattr(cluster.client, "list_page", listed)
    async with asyncio.TaskGroup() as group:
        confirmed = group.create_task(informers.confirm(cluster.client, ALL_NODES))
        await asyncio.sleep(0.1)
        if reported:
            await cluster.client.patch(NODES, "n2", MergePatch({"metadata": {"labels": {"a": "b"}}}))
    assert await confirmed is reported
    assert [one.args[1].limit for one in listed.call_args_list] == limits


async def test_informer_without_an_open_watch_is_interrupted(informers: PlanInformers) -> None:
    await informers.watch(ALL_NODES)
    for _ in range(2):
        assert informers.interrupted(ALL_NODES, ALL_JOBS) == [ALL_NODES]
        # A watch that was opened again sends the changes since its interruption first.
        await asyncio.sleep(JUST_OPENED / 2)
    await asyncio.sleep(JUST_OPENED)
    assert informers.interrupted(ALL_NODES, ALL_JOBS) == []


async def test_store_whose_watch_hangs_is_listed_again(cluster: Harvester, informers: PlanInformers) -> None:
    await cluster.nodes("n1")
    await informers.watch(ALL_NODES)
    await asyncio.sleep(1)
    for informer in informers.running():
        # No event reaches the store.
        informer.put = informer.delete = lambda _: None  # type: ignore[method-assign, assignment]
    await cluster.nodes("n2")
    await informers.confirm(cluster.client, ALL_NODES)
    found = (await informers.watch(ALL_NODES)).list()
    assert [node["metadata"]["name"] for node in found] == ["n1", "n2"]
