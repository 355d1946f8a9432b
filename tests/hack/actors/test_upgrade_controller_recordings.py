"""The simulated system-upgrade-controller against recordings of the real one: order and values, never times.

A simulated run is brought into the form of a recording, so that one function reads both.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hack import virtual_time
from hack.actors.upgrade_controller import UpgradeController
from hack.apiserver.call import call_of
from hack.scenario import load
from tests.support.cluster.actor_cluster import ActorCluster, ScriptedPods
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SUC_PLANS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.bench.recorder import Exchange
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

FOLDER = Path(__file__).parent / "recordings"
#: Seconds that the Pods of the recordings took on each node, and which of them failed.
SECONDS = {
    "healthy-concurrency-1": {"node1": 2.0, "node2": 2.0, "node3": 2.0},
    "healthy-concurrency-3": {"node1": 2.0, "node2": 2.06, "node3": 2.03},
    "fail-last-concurrency-3": {"node1": 1.0, "node2": 3.0, "node3": 1.06},
    "plan-deleted-while-running": {"node1": 60.0, "node2": 60.0},
}
FAILING = {"fail-last-concurrency-3": {"node2"}}
#: Which node comes first, and so gets a paused Job, depends on uids.
ANY_ORDER = "healthy-concurrency-1"
DELETED = "plan-deleted-while-running"
WRITTEN = {200, 201}
#: Defaults of the real API server, and what the server or the Job's strategy adds.
DEFAULTS: dict[str, Any] = {
    "manualSelector": False,
    "completionMode": "NonIndexed",
    "suspend": False,
    "schedulerName": "default-scheduler",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
ADDED = {
    "selector",
    "serviceAccount",
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
}


@cache
def recording(name: str) -> dict[str, Any]:
    """Load a recording."""
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


@cache
def simulated(name: str, seed: int) -> dict[str, Any]:
    """Give the recording's Plan to the simulated controller, and record it."""
    return virtual_time.run(_simulate(name, seed))


async def _simulate(name: str, seed: int) -> dict[str, Any]:
    recorded = recording(name)
    stage = ActorCluster(scenario=_scenario(recorded["meta"]), seed=seed)
    await stage.prepare("cattle-system", groups=("upgrade.cattle.io",))
    # Which two of three nodes come first is decided by their uids: here there are only the two that did.
    for node in recorded["jobs"] if name == DELETED else recorded["meta"]["nodes"]:
        await stage.add_node(node)
    history: list[tuple[str, Object]] = []
    stage.server.storage.observers.append(lambda _, entry: history.append((entry.kind, entry.stored.object)))
    pods = ScriptedPods(SECONDS[name])
    pods.failing = FAILING.get(name, set())
    async with stage.play(UpgradeController(stage.context.for_actor("suc")), *stage.job_actors(pods)):
        plan = {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", **recorded["plan"]}
        await stage.client.create(SUC_PLANS, plan)
        if name == DELETED:
            await asyncio.sleep(2)
            await stage.client.delete(SUC_PLANS, objects.name(plan), namespace="cattle-system")
        await asyncio.sleep(30)
    jobs = [job for event, job in history if job["kind"] == "Job" and event == "ADDED"]
    return {
        "timeline": [_entry(event, obj) for event, obj in history if obj["kind"] in {"Plan", "Job", "Node", "Event"}],
        "jobs": {_node(job): job for job in reversed(jobs)},
        "writes": [_write(one) for one in stage.recorder.of("system-upgrade-controller") if one.writes],
    }


def _scenario(meta: dict[str, Any]) -> Scenario:
    settings = {"backoff_limit": meta["backoffLimit"], "ttl": meta["ttlSecondsAfterFinished"], "pull_policy": "Always"}
    return load("three-nodes").changed(
        jitter=0.0,
        nodes={"count": 1, "management": 1},
        vms={"count": 0},
        durations={"job_sync": 1},
        upgrade_controller=settings,
    )


def _node(job: Object) -> str:
    return objects.labels(job)["upgrade.cattle.io/node"]


def _entry(event: str, obj: Object) -> dict[str, Any]:
    """Return an entry of a recording's timeline."""
    entry, status = {"kind": obj["kind"], "event": event}, objects.status(obj)
    match obj["kind"]:
        case "Plan":
            return entry | {"status": status}
        case "Job":
            return entry | {
                "node": _node(obj),
                "uid": objects.uid(obj),
                "parallelism": objects.spec(obj)["parallelism"],
                "status": {key: status[key] for key in ("active", "ready", "succeeded", "failed") if key in status},
                "conditions": [{key: one[key] for key in ("type", "reason")} for one in status.get("conditions", [])],
            }
        case "Node":
            labels = {key: value for key, value in objects.labels(obj).items() if key.startswith("plan.upgrade.")}
            return entry | {"name": objects.name(obj), "planLabels": labels}
        case _:
            about = f"{obj['involvedObject']['kind']}/{obj['involvedObject']['name']}"
            same = {key: obj[key] for key in ("type", "reason", "message", "count")}
            return entry | same | {"object": about, "source": obj["source"]["component"]}


def _write(exchange: Exchange) -> dict[str, Any]:
    """Return an entry of a recording's writes."""
    call, response = call_of(exchange.request), json.loads(exchange.body or b"{}")
    resource = call.resource.split(".")[0] + (f"/{call.subresource}" if call.subresource else "")
    entry: dict[str, Any] = {"verb": call.verb, "resource": resource, "code": exchange.status}
    if exchange.status not in WRITTEN or call.verb == "delete":
        return entry
    complete = objects.condition(response, "Complete")
    return entry | {
        "name": call.name or objects.name(response),
        "applying": objects.status(response).get("applying", []),
        "complete": f"{complete.get('status')}/{complete.get('reason')}",
        "parallelism": objects.spec(response).get("parallelism"),
    }


def of_kind(run: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Yield the timeline's entries of one kind."""
    return (entry for entry in run["timeline"] if entry["kind"] == kind)


def plan_states(run: dict[str, Any], *, any_order: bool) -> list[Any]:
    """Return the Plan's distinct statuses in order; a condition's time is replaced by whether it changed.

    A deleted Plan shows its last status again, without a change of times.
    """
    states: list[Any] = []
    times: dict[str, Any] = {}
    last: Any = None
    for entry in of_kind(run, "Plan"):
        status, conditions = dict(entry["status"]), []
        for one in status.get("conditions", []):
            time = one.get("updatedAt", one.get("lastUpdateTime"))
            moved = times.get(one["type"]) not in (None, time)
            times[one["type"]] = time
            conditions.append(({key: one.get(key) for key in ("type", "status", "reason", "message")}, moved))
        if any_order:
            status["applying"] = len(status.get("applying", []))
        still = {**status, "conditions": [one for one, _ in conditions]}
        if not states or still != last:
            states.append({**status, "conditions": conditions})
        last = still
    return states


def job_states(run: dict[str, Any], node: str) -> list[Any]:
    """Return the distinct states of a node's last Job from the moment at which it may run.

    A paused Job is deleted and made again, or started as it is: both were recorded.
    """
    entries = [one for one in of_kind(run, "Job") if one["node"] == node]
    running = [one for one in entries if one["uid"] == entries[-1]["uid"] and one["parallelism"] == 1]
    return [state for state, _ in groupby(running, key=itemgetter("status", "conditions"))]


def plan_events(run: dict[str, Any]) -> set[tuple[str, ...]]:
    """Return the Plan's events: they overtake each other, and SyncJob names nodes in the order of their uids."""
    fields = itemgetter("object", "type", "reason", "message", "source")
    first = [one for one in of_kind(run, "Event") if one["count"] == 1 and one["reason"] != "SyncJob"]
    return {fields(one) for one in first if one["object"].startswith("Plan/")}


def milestones(run: dict[str, Any], node: str) -> tuple[list[str], list[str]]:
    """Return what the controller does for one node, in order: the partial order that every run has.

    The first list has the Job and the label, the second the Plan's status: label and status follow the Job's completion
    independently, as writes for different nodes do. A paused Job is deleted and created again, or resumed by a patch:
    both are recorded, and both are "running Job" here.
    """
    work: list[str] = []
    status: list[str] = []
    is_applying = False
    for write in run["writes"]:
        if write["code"] not in WRITTEN or write["verb"] == "delete":
            continue
        if write["resource"] == "plans/status":
            if (node in write["applying"]) != is_applying:
                is_applying = not is_applying
                status.append("applying" if is_applying else "applied")
                work += ["applying"] if is_applying else []
            if write["complete"] in {"True/Complete", "False/JobFailed"}:
                status.append(write["complete"])
                work.append(write["complete"])
        elif write["resource"] == "nodes" and write["name"] == node:
            work.append("labelled")
        elif write["resource"] == "jobs" and f"-on-{node}-" in write["name"]:
            work.append("running Job" if write["parallelism"] == 1 else "paused Job")
    return work, status


def bare_job(job: dict[str, Any], *, any_order: bool) -> Any:
    """Return a Job's labels, annotations, owners and spec, without server defaults and uids."""
    metadata = {key: job["metadata"][key] for key in ("name", "namespace", "labels", "annotations", "ownerReferences")}
    metadata["annotations"] = {**metadata["annotations"], "objectset.rio.cattle.io/applied": "packed"}
    spec = {key: value for key, value in job["spec"].items() if not (any_order and key == "parallelism")}
    return _bare({"metadata": metadata, "spec": spec})


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if key not in ADDED and one != DEFAULTS.get(key, ...)}
    # A Pod's securityContext is an empty object on the server; a container's is not.
    kept = {key: one for key, one in kept.items() if not (key == "securityContext" and one == {})}
    return {key: "uid" if key == "uid" else _bare(one) for key, one in kept.items()}


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("seed", range(1, 4))
class TestAgainstRecording:
    def test_plan_passes_through_the_recorded_states(self, name: str, seed: int) -> None:
        any_order = name == ANY_ORDER
        states = plan_states(simulated(name, seed), any_order=any_order)
        assert states == plan_states(recording(name), any_order=any_order)

    def test_jobs_equal_the_recorded_ones(self, name: str, seed: int) -> None:
        made, recorded = (
            {node: bare_job(job, any_order=name == ANY_ORDER) for node, job in run["jobs"].items()}
            for run in (simulated(name, seed), recording(name))
        )
        assert made == recorded

    def test_job_statuses_equal_the_recorded_ones(self, name: str, seed: int) -> None:
        for node in recording(name)["jobs"]:
            assert job_states(simulated(name, seed), node) == job_states(recording(name), node)

    def test_node_labels_and_events_equal_the_recorded_ones(self, name: str, seed: int) -> None:
        run, recorded = simulated(name, seed), recording(name)
        marked = {one["name"]: one["planLabels"] for one in of_kind(run, "Node") if one["planLabels"]}
        assert marked == {one["name"]: one["planLabels"] for one in of_kind(recorded, "Node")}
        assert plan_events(run) == plan_events(recorded)

    def test_milestones_of_each_node_come_in_recorded_order(self, name: str, seed: int) -> None:
        nodes = recording(name)["jobs"]
        reached, expected = (
            [milestones(run, node) for node in nodes] for run in (simulated(name, seed), recording(name))
        )
        if name == ANY_ORDER:
            reached, expected = sorted(reached), sorted(expected)
        assert reached == expected
