"""The simulated system-upgrade-controller against recordings of the real one: order and values, never times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.jobs import JobController
from hack.actors.kubelet import Kubelet
from hack.actors.scheduler import Scheduler
from hack.actors.toolkit import Ended
from hack.actors.upgrade_controller import UpgradeController
from hack.cluster.scenario import load
from tests.support.actor_cluster import ActorCluster
from tests.support.suc_recording import (
    Wiretap,
    bare_job,
    effective,
    job_states,
    milestones,
    plan_labels,
    plan_states,
    recording,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SUC_PLANS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.actors.context import Actor
    from hack.cluster.scenario import Scenario
    from upgrade_manager.kube.objects import Object

NAMES = ("healthy-concurrency-1", "healthy-concurrency-3", "fail-last-concurrency-3", "plan-deleted-while-running")
#: Seconds that the Pods of the recordings took on each node, and which of them failed.
SECONDS = {
    "healthy-concurrency-1": {"node1": 2.0, "node2": 2.0, "node3": 2.0},
    "healthy-concurrency-3": {"node1": 2.0, "node2": 2.06, "node3": 2.03},
    "fail-last-concurrency-3": {"node1": 1.0, "node2": 3.0, "node3": 1.06},
    "plan-deleted-while-running": {"node1": 60.0, "node2": 60.0},
}
FAILING = {"fail-last-concurrency-3": "node2"}


class ScriptedPods:
    """Ends each Pod after its node's seconds, as the recordings' script did."""

    def __init__(self, name: str, seconds: dict[str, float]) -> None:
        self._seconds = seconds
        self._failing = FAILING.get(name)
        self._ends: dict[str, float] = {}

    async def look(self, pod: Object) -> Ended | float | None:
        now, node = asyncio.get_running_loop().time(), objects.spec(pod)["nodeName"]
        end = self._ends.setdefault(objects.uid(pod), now + self._seconds[node])
        return end - now if end > now else Ended(1 if node == self._failing else 0)

    def forget(self, pod: Object) -> None:
        self._ends.pop(objects.uid(pod), None)


class SimulatedRun:
    """What the simulated controller does with a recording's Plan."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.given = recording(name)
        self.history: list[tuple[str, Object]] = []
        self.writes: list[dict[str, Any]] = []

    async def run(self, seed: int) -> SimulatedRun:
        taps: list[Wiretap] = []

        def tapped(inner: Any) -> Wiretap:
            taps.append(Wiretap(inner, user_agent="system-upgrade-controller"))
            return taps[0]

        stage = ActorCluster(scenario=self._scenario(), seed=seed, wrap=tapped)
        await stage.prepare("cattle-system", groups=("upgrade.cattle.io",))
        # Which two of three nodes come first is decided by their uids: here there are only the two that did.
        deleted = self.name == "plan-deleted-while-running"
        for node in self.given["jobs"] if deleted else self.given["meta"]["nodes"]:
            await stage.add_node(node)
        stage.server.storage.observers.append(lambda _, entry: self.history.append((entry.kind, entry.stored.object)))
        context = stage.context
        actors: list[Actor] = [
            UpgradeController(context.for_actor("suc")),
            JobController(context.for_actor("jobs")),
            Scheduler(context.for_actor("scheduler")),
            Kubelet(context.for_actor("kubelet"), ScriptedPods(self.name, SECONDS[self.name])),
        ]
        async with stage.play(*actors):
            plan = {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", **self.given["plan"]}
            await stage.client.create(SUC_PLANS, plan)
            if deleted:
                await asyncio.sleep(2)
                await stage.client.delete(SUC_PLANS, objects.name(plan), namespace="cattle-system")
            await asyncio.sleep(30)
        self.writes = taps[0].writes
        return self

    def _scenario(self) -> Scenario:
        meta = self.given["meta"]
        settings = {"backoff_limit": meta["backoffLimit"], "ttl": meta["ttlSecondsAfterFinished"]}
        return load("three-nodes").changed(
            jitter=0.0,
            nodes={"count": 1, "management": 1},
            vms={"count": 0},
            durations={"job_sync": 1},
            upgrade_controller=settings | {"pull_policy": "Always"},
        )

    def of_kind(self, kind: str) -> Iterable[tuple[str, Object]]:
        return ((event, obj) for event, obj in self.history if obj["kind"] == kind)


_RUNS: dict[tuple[str, int], SimulatedRun] = {}


async def simulated(name: str, *, seed: int) -> SimulatedRun:
    """Simulate once per seed: the same seed gives the same run."""
    key = (name, seed)
    if key not in _RUNS:
        _RUNS[key] = await SimulatedRun(name).run(seed)
    return _RUNS[key]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(1, 4))
class TestAgainstRecording:
    async def test_plan_passes_through_the_recorded_states(self, name: str, seed: int) -> None:
        run = await simulated(name, seed=seed)
        said = [entry["status"] for entry in run.given["timeline"] if entry["kind"] == "Plan"]
        done = [objects.status(obj) for _, obj in run.of_kind("Plan")]
        expected = plan_states(said, time="updatedAt")
        states = plan_states(done, time="lastUpdateTime")
        if name == "healthy-concurrency-1":
            expected, states = _unordered(expected), _unordered(states)
        assert _collapsed(states) == _collapsed(expected)

    async def test_jobs_equal_the_recorded_ones(self, name: str, seed: int) -> None:
        run = await simulated(name, seed=seed)
        first: dict[str, Object] = {}
        for event, job in run.of_kind("Job"):
            if event == "ADDED":
                first.setdefault(objects.labels(job)["upgrade.cattle.io/node"], job)
        assert first.keys() == run.given["jobs"].keys()
        for node, job in run.given["jobs"].items():
            wanted, made = bare_job(job), bare_job(first[node])
            if name == "healthy-concurrency-1":
                # Which node comes first, and so gets a paused Job, depends on uids.
                wanted["spec"].pop("parallelism"), made["spec"].pop("parallelism")
            assert made == wanted

    async def test_job_statuses_equal_the_recorded_ones(self, name: str, seed: int) -> None:
        run = await simulated(name, seed=seed)
        for node in run.given["jobs"]:
            said = [one for one in run.given["timeline"] if one["kind"] == "Job" and one["node"] == node]
            done = [_job_entry(event, job) for event, job in run.of_kind("Job") if _node(job) == node]
            last = said[-1]["uid"]
            expected = job_states([one for one in said if one["uid"] == last])
            states = job_states([one for one in done if one["uid"] == done[-1]["uid"]])
            # A paused Job is deleted and made again, or started as it is: both were recorded.
            assert _running(states) == _running(expected)

    async def test_node_labels_and_events_equal_the_recorded_ones(self, name: str, seed: int) -> None:
        run = await simulated(name, seed=seed)
        said = [one for one in run.given["timeline"] if one["kind"] == "Node"]
        marked = {objects.name(node): plan_labels(node) for _, node in run.of_kind("Node") if plan_labels(node)}
        assert marked == {one["name"]: one["planLabels"] for one in said}
        expected = [_event(one) for one in run.given["timeline"] if one["kind"] == "Event" and one["count"] == 1]
        events = [_recorded_event(event) for kind, event in run.of_kind("Event") if kind == "ADDED"]
        assert _about_plan(events) == _about_plan(expected)

    async def test_milestones_of_each_node_come_in_recorded_order(self, name: str, seed: int) -> None:
        run = await simulated(name, seed=seed)
        recorded, simulated_writes = effective(run.given["writes"]), effective(run.writes)
        expected = {node: milestones(recorded, node) for node in run.given["jobs"]}
        reached = {node: milestones(simulated_writes, node) for node in run.given["jobs"]}
        if name == "healthy-concurrency-1":
            # Which node comes first, and so gets a paused Job, depends on uids.
            assert sorted(reached.values()) == sorted(expected.values())
        else:
            assert reached == expected


def _collapsed(states: list[Any]) -> list[Any]:
    """Without repeats: the deleted Plan shows its last state once more."""
    plain = [_still(one) for one in states]
    return [state for index, state in enumerate(states) if index == 0 or plain[index] != plain[index - 1]]


def _still(state: Any) -> Any:
    conditions = [{**one, "moved": False} for one in state.get("conditions", [])]
    return {**state, "conditions": conditions}


def _unordered(states: list[Any]) -> list[Any]:
    """Which node is next is decided by uids, which differ: only how many are being served is compared."""
    return [{**one, "applying": len(one.get("applying", []))} for one in states]


def _job_entry(event: str, job: Object) -> dict[str, Any]:
    status = objects.status(job)
    return {
        "event": event,
        "uid": objects.uid(job),
        "parallelism": objects.spec(job)["parallelism"],
        "status": {key: status[key] for key in ("active", "ready", "succeeded", "failed") if key in status},
        "conditions": [{key: one[key] for key in ("type", "reason")} for one in status.get("conditions", [])],
    }


def _running(states: list[Any]) -> list[Any]:
    """From the moment at which it may run, without repeats."""
    started = [state[1:] for state in states if state[1] == 1]
    return [state for index, state in enumerate(started) if index == 0 or state != started[index - 1]]


def _node(job: Object) -> str:
    return objects.labels(job)["upgrade.cattle.io/node"]


def _event(entry: dict[str, Any]) -> tuple[str, ...]:
    return (entry["object"], entry["type"], entry["reason"], entry["message"], entry["source"])


def _recorded_event(event: Object) -> tuple[str, ...]:
    about = f"{event['involvedObject']['kind']}/{event['involvedObject']['name']}"
    return (about, event["type"], event["reason"], event["message"], event["source"]["component"])


def _about_plan(events: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Those about the Plan, by what they say: they overtake each other, and which node is served when varies."""
    return sorted({event for event in events if event[0].startswith("Plan/") and event[2] != "SyncJob"})
