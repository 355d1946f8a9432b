from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from tests.support.cluster.harvester import Harvester
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.resources import JOBS, NODES, SERVICES, Resource
from upgrade_manager.pipeline.informers import (
    JUST_OPENED,
    SYNC_TIMEOUT,
    WRITE_TIMEOUT,
    Informers,
    InformerSpec,
    PlanInformers,
    Write,
    slim_job,
    slim_node,
    slim_pod,
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


def test_slim_node_keeps_what_decisions_read() -> None:
    node = {
        "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}, "managedFields": [1]},
        "spec": {"podCIDR": "x", "unschedulable": True},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
                {"type": "DiskPressure", "status": "False"},
            ],
            "nodeInfo": {"osImage": "Harvester v1.6.1", "bootID": "x"},
            "addresses": [
                {"type": "Hostname", "address": "n1"},
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": "fd00::1"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [{"names": ["a"]}] * 50,
        },
    }
    slim = slim_node(node)
    assert slim["metadata"] == {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    # The heartbeat of an unchanged node is not a change.
    assert slim["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
    assert slim["status"]["nodeInfo"]["osImage"] == "Harvester v1.6.1"
    assert slim["status"]["addresses"] == [{"type": "InternalIP", "address": "10.0.0.1"}]
    assert slim["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert "images" not in slim["status"]
    assert slim["spec"] == {"unschedulable": True}


def test_slim_node_keeps_the_managers_annotation() -> None:
    own = {"management.harvesterhci.io/pendingOSImage": "Harvester v1.8.0"}
    slim = slim_node(
        {"metadata": {"name": "n1", "annotations": {"node.longhorn.io/default-disks-config": "[]", **own}}}
    )
    assert slim["metadata"] == {"name": "n1", "annotations": own}


@pytest.mark.parametrize("key", ["kubevirt.io/drain", "node.kubernetes.io/unschedulable"])
def test_slim_node_keeps_taints_with_the_pre_drain_jobs(key: str) -> None:
    taints = [{"key": "example.com/other", "effect": "NoSchedule"}, {"key": key, "effect": "NoSchedule"}]
    slim = slim_node({"metadata": {"name": "n1"}, "spec": {"taints": taints}})
    assert slim["spec"].get("taints") == (taints if key == "kubevirt.io/drain" else None)


@pytest.mark.parametrize(
    "status",
    [{}, {"status": None}, {"status": dict.fromkeys(("conditions", "nodeInfo", "addresses", "daemonEndpoints"))}],
    ids=["none", "null", "nulls"],
)
def test_slim_node_accepts_missing_fields(status: dict[str, Any]) -> None:
    slim = slim_node({"metadata": {"name": "n1"}, "spec": None, **status})
    assert (slim["status"]["conditions"], slim["spec"]) == ([], {"unschedulable": False})


def test_slim_job_keeps_what_decisions_read() -> None:
    metadata: dict[str, Any] = {"name": "j", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]}
    step = {"management.harvesterhci.io/progress": "1/2 wait"}
    job = {
        "metadata": metadata | {"managedFields": [1], "annotations": {**step, "other": "x"}},
        "spec": {"parallelism": 0, "suspend": True, "template": {"spec": {}}},
        "status": {"failed": 1, "conditions": [], "startTime": "x"},
    }
    slim = slim_job(job)
    assert slim["metadata"] == metadata | {"annotations": step}
    assert slim["spec"] == {"parallelism": 0, "suspend": True}
    assert slim["status"] == {"failed": 1, "conditions": [], "startTime": "x"}
    assert slim_job({"metadata": {"name": "j"}})["spec"] == {"parallelism": 1, "suspend": False}
    assert slim_job({"metadata": {"name": "j"}, "spec": {"backoffLimit": 2}})["spec"]["backoffLimit"] == 2


@pytest.mark.parametrize(
    ("component", "kept"),
    [
        ("cluster-upgrade", {"active", "ready", "startTime"}),
        ("node-upgrade", {"ready", "startTime"}),
        ("image-preload", {"ready", "startTime"}),
    ],
)
def test_slim_job_keeps_whether_a_pod_runs(component: str, kept: set[str]) -> None:
    labels = {"management.harvesterhci.io/upgrade-component": component}
    status = {"active": 1, "ready": 1, "startTime": "x", "terminating": 0}
    assert slim_job({"metadata": {"name": "j", "labels": labels}, "status": status})["status"].keys() == kept


async def test_store_is_confirmed_once_it_has_caught_up(cluster: Harvester, informers: PlanInformers) -> None:
    await cluster.nodes("n1")
    await informers.watch(ALL_NODES)
    await cluster.nodes("n2")
    # The event of n2 arrives while the stores are compared.
    await informers.confirm(cluster.client, ALL_NODES)
    found = (await informers.watch(ALL_NODES)).list()
    assert [node["metadata"]["name"] for node in found] == ["n1", "n2"]


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


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ({"terminated": {"exitCode": 0, "message": "{}"}}, {"terminated": {"exitCode": 0, "message": "{}"}}),
        ({"waiting": {"reason": "ErrImagePull"}}, {"waiting": {"reason": "ErrImagePull"}}),
        ({"running": {"startedAt": "x"}}, {}),
        (None, {}),
    ],
    ids=["ended", "waits", "runs", "null"],
)
def test_slim_pod_keeps_reports_and_missing_images(state: Any, kept: dict[str, Any]) -> None:
    metadata: dict[str, Any] = {"name": "p", "namespace": "x", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]}
    pod = {
        "metadata": metadata | {"managedFields": [1], "annotations": {"a": "b"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
        "status": {
            "phase": "Pending",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready"}],
            "containerStatuses": [{"name": "c", "image": "i", "ready": True, "state": state}],
        },
    }
    containers = [{"name": "c", "image": "i", "state": kept}]
    assert slim_pod(pod) == {
        "metadata": metadata,
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Pending", "containerStatuses": containers},
    }
    assert slim_pod({"metadata": {}, "spec": None, "status": {"containerStatuses": None}})["status"]["phase"] == ""
