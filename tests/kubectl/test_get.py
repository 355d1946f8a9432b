"""kubectl get, describe and events: tables, full objects, selectors, watches."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.cluster.kubectl import PLANS, Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]

CONDITIONS = (
    ("Available", "True", "Executable", ""),
    ("Progressing", "True", "NodeUpgrading", "waiting"),
    ("Degraded", "False", "ReconcileSuccess", ""),
)
STATUS = {
    "currentPhase": "NodeUpgrading",
    "previousVersion": "v1.7.1",
    "releaseMetadata": {"harvester": "v1.8.0"},
    "conditions": [
        dict(zip(("type", "status", "reason", "message"), one, strict=True))
        | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        for one in CONDITIONS
    ],
    "display": {
        "state": "Running",
        "transitioning": True,
        "error": False,
        "message": "waiting",
        "nodes": "1/3",
    },
}


@pytest.mark.rule("api: kubectl get shows VERSION, PHASE, STATUS, NODES and AGE")
async def test_get_shows_the_columns_of_a_plan(cluster: Cluster) -> None:
    await cluster.plan(status=STATUS)
    rows = (await cluster.succeed("get", "upgradeplans")).rows
    assert rows[0] == ["NAME", "VERSION", "PHASE", "STATUS", "NODES", "AGE"]
    assert rows[1][:-1] == ["demo", "v1.8.0", "NodeUpgrading", "Running", "1/3"]
    assert rows[1][-1].endswith("s")


@pytest.mark.rule("api: kubectl get -o wide adds the conditions, IMAGE, PREVIOUS, TARGET, MESSAGE and NEXT")
async def test_wide_output_adds_columns(cluster: Cluster) -> None:
    await cluster.plan(image="iso", status=STATUS)
    rows = (await cluster.succeed("get", "up", "demo", "-o", "wide")).rows
    assert rows[0][6:] == ["AVAILABLE", "PROGRESSING", "DEGRADED", "IMAGE", "PREVIOUS", "TARGET", "MESSAGE", "NEXT"]
    assert rows[1][-7:] == ["True", "True", "False", "iso", "v1.7.1", "v1.8.0", "waiting"]


async def test_empty_list_and_plan_without_a_manager_are_shown(cluster: Cluster) -> None:
    outcome = await cluster.succeed("get", "ups")
    assert (outcome.out, outcome.err) == ("", "No resources found\n")
    await cluster.plan()
    assert (await cluster.succeed("get", "ups", "--no-headers")).rows[0][:-1] == ["demo", "v1.8.0", "Pending"]


async def test_objects_names_and_fields_are_printed(cluster: Cluster) -> None:
    plan = await cluster.plan()
    plan["metadata"].pop("managedFields", None)  # kubectl does not show them
    assert yaml.safe_load((await cluster.succeed("get", "up", "demo", "-o", "yaml")).out) == plan
    assert (await cluster.succeed("get", "up", "demo", "-o", "json")).json == plan
    listed = (await cluster.succeed("get", "up", "-o", "json")).json
    assert (listed["kind"], listed["items"]) == ("List", [plan])
    named = await cluster.succeed("get", "up", "-o", "name")
    assert named.out == "upgradeplan.management.harvesterhci.io/demo\n"
    assert (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec.version}")).out == "v1.8.0"
    columns = await cluster.succeed("get", "up", "-o", "custom-columns=N:.metadata.name,V:.spec.version")
    assert columns.rows == [["N", "V"], ["demo", "v1.8.0"]]


async def test_unknown_kind_is_refused(cluster: Cluster) -> None:
    message = await cluster.fail("get", "nosuchkinds")
    assert message == 'error: the server doesn\'t have a resource type "nosuchkinds"\n'


async def test_selectors_select_and_chunks_are_joined(cluster: Cluster) -> None:
    async def names(*flags: str) -> list[str]:
        return [row[0] for row in (await cluster.succeed("get", "up", "--no-headers", *flags)).rows]

    for name in "abcd":
        await cluster.plan(name)
    await cluster.succeed("label", "up", "a", "b", "team=blue")
    assert await names("-l", "team=blue") == ["a", "b"]
    assert await names("-l", "team notin (blue)") == ["c", "d"]
    assert await names("--field-selector", "metadata.name=b") == ["b"]
    assert await names("--chunk-size", "3") == ["a", "b", "c", "d"]
    shown = await cluster.succeed("get", "up", "-L", "team", "--no-headers")
    assert [row[-1] for row in shown.rows][:2] == ["blue", "blue"]


async def test_watch_prints_each_change(cluster: Cluster) -> None:
    await cluster.plan()
    async with cluster.running("get", "up", "-w", "--output-watch-events") as output:
        assert (await output.readline()).split()[:2] == [b"EVENT", b"NAME"]
        assert (await output.readline()).split()[:3] == [b"ADDED", b"demo", b"v1.8.0"]
        await cluster.wire.patch(f"{PLANS}/demo/status", {"status": {"currentPhase": "Initializing"}})
        assert (await output.readline()).split()[3] == b"Initializing"
        await cluster.plan("other")
        assert (await output.readline()).split()[:2] == [b"ADDED", b"other"]
        await cluster.wire.delete(f"{PLANS}/demo")
        assert (await output.readline()).split()[:2] == [b"DELETED", b"demo"]


EVENTS = "/api/v1/namespaces/default/events"


def event(plan: dict[str, Any], name: str, *, reason: str, message: str, count: int = 1) -> dict[str, Any]:
    """Build an Event about a plan as the manager records it."""
    metadata, time = plan["metadata"], plan["metadata"]["creationTimestamp"]
    about = {"apiVersion": plan["apiVersion"], "kind": "UpgradePlan", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "metadata": {"name": f"demo.{name}"},
        "involvedObject": about,
        "type": "Normal",
        "reason": reason,
        "message": message,
        "source": {"component": "upgrade-manager"},
        "count": count,
        "firstTimestamp": time,
        "lastTimestamp": time,
    }


async def test_describe_shows_a_plan_with_its_events(cluster: Cluster) -> None:
    plan = await cluster.plan(status={"currentPhase": "Initializing"})
    await cluster.wire.post(EVENTS, event(plan, "1", reason="Initialized", message="the plan is initialized"))
    await cluster.wire.post(EVENTS, event(plan, "2", reason="Waiting", message="for the image", count=3))
    lines = (await cluster.succeed("describe", "up", "demo")).lines
    assert lines[0].split() == ["Name:", "demo"]
    assert ["Current", "Phase:", "Initializing"] in [line.split() for line in lines]
    start = lines.index("Events:")
    rows = [line.split() for line in lines[start + 1 :]]
    assert rows[0] == ["Type", "Reason", "Age", "From", "Message"]
    assert rows[2][:2] == ["Normal", "Initialized"]
    assert rows[2][-5:] == ["upgrade-manager", "the", "plan", "is", "initialized"]
    assert "(x3" in rows[3]


async def test_describe_hides_events_of_an_earlier_plan(cluster: Cluster) -> None:
    plan = await cluster.plan()
    assert (await cluster.succeed("describe", "up", "demo")).rows[-1] == ["Events:", "<none>"]
    await cluster.wire.post(EVENTS, event(plan, "1", reason="Initialized", message="old"))
    listed = await cluster.succeed("events", "--for", "up/demo", "--no-headers")
    assert listed.rows[0][1:] == ["Normal", "Initialized", "UpgradePlan/demo", "old"]
    await cluster.wire.delete(f"{PLANS}/demo")
    await cluster.plan()
    assert (await cluster.succeed("describe", "up", "demo")).rows[-1] == ["Events:", "<none>"]
