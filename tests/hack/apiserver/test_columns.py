"""The columns of built-in kinds, on objects as real as the simulator makes them and on empty ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hack.apiserver.columns import COLUMNS
from hack.apiserver.expression import compiled
from hack.apiserver.table import cell

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
META = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}
ROLES = {"node-role.kubernetes.io/etcd": "true", "node-role.kubernetes.io/control-plane": "true", "a": "b"}
READY = {"type": "Ready", "status": "True"}
TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}}


def shown(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {column.name: cell(column, {"metadata": META} | item, NOW) for column in COLUMNS[kind]}


def test_every_expression_is_sound() -> None:
    for columns in COLUMNS.values():
        for column in columns:
            if column.json_path.startswith("="):
                assert compiled(column.json_path[1:]) is not None


@pytest.mark.parametrize(
    ("item", "status"),
    [
        pytest.param({"spec": {}, "status": {"conditions": [READY]}}, "Ready", id="ready"),
        pytest.param(
            {"spec": {}, "status": {"conditions": [READY | {"status": "Unknown"}]}}, "NotReady", id="not ready"
        ),
        pytest.param(
            {"spec": {"unschedulable": True}, "status": {"conditions": [READY]}},
            "Ready,SchedulingDisabled",
            id="cordoned",
        ),
        pytest.param({"status": {"conditions": [READY]}}, "Ready", id="without a spec"),
        pytest.param({}, "Unknown", id="unknown"),
    ],
)
def test_the_status_of_a_node(item: dict[str, Any], status: str | None) -> None:
    assert shown("nodes", item)["Status"] == status


def test_a_node() -> None:
    status = {
        "conditions": [READY],
        "nodeInfo": {"kubeletVersion": "v1.34.2", "osImage": "Harvester v1.7.1"},
        "addresses": [{"type": "Hostname", "address": "x"}, {"type": "InternalIP", "address": "10.0.0.1"}],
    }
    cells = shown("nodes", {"metadata": META | {"labels": ROLES}, "spec": {}, "status": status})
    assert cells["Roles"] == "control-plane,etcd"
    assert (cells["Age"], cells["Version"], cells["OS-Image"]) == ("60m", "v1.34.2", "Harvester v1.7.1")
    assert (cells["Internal-IP"], cells["External-IP"]) == ("10.0.0.1", "<none>")
    assert shown("nodes", {"spec": {}})["Roles"] == "<none>"


@pytest.mark.parametrize(
    ("item", "status"),
    [
        pytest.param({"status": {"phase": "Running"}}, "Running", id="running"),
        pytest.param({"status": {"phase": "Succeeded"}}, "Succeeded", id="succeeded"),
        pytest.param({"status": {"phase": "Failed"}}, "Failed", id="failed"),
        pytest.param({"status": {"phase": "Failed", "reason": "Evicted"}}, "Evicted", id="with a reason"),
        pytest.param({"metadata": META | {"deletionTimestamp": "x"}}, "Terminating", id="going"),
        pytest.param(
            {"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}},
            "ImagePullBackOff",
            id="waiting",
        ),
        pytest.param(
            {"status": {"containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}}, "ExitCode:3", id="ended"
        ),
        pytest.param(
            {"status": {"initContainerStatuses": [{"state": {"running": {}}}]}}, "Init:0/1", id="initializing"
        ),
        pytest.param(
            {
                "status": {
                    "initContainerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
                    "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
                }
            },
            "Init:CrashLoopBackOff",
            id="never initialized",
        ),
        pytest.param({}, "", id="new"),
    ],
)
def test_the_status_of_a_pod(item: dict[str, Any], status: str) -> None:
    assert shown("pods", {"spec": TEMPLATE["spec"] | {"initContainers": [{}]}} | item)["Status"] == status


def test_a_pod() -> None:
    statuses = [{"ready": True, "restartCount": 2, "state": {"running": {}}}, {"ready": False, "state": {}}]
    cells = shown("pods", {"spec": TEMPLATE["spec"] | {"nodeName": "n"}, "status": {"containerStatuses": statuses}})
    assert (cells["Ready"], cells["Restarts"], cells["Node"]) == ("1/2", "2", "n")
    assert shown("pods", {"spec": TEMPLATE["spec"]})["Ready"] == "0/2"


@pytest.mark.parametrize(
    ("item", "status", "duration"),
    [
        pytest.param({"spec": {}}, "Running", "", id="new"),
        pytest.param(
            {"spec": {}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}},
            "Suspended",
            "",
            id="suspended",
        ),
        pytest.param({"spec": {}, "status": {"startTime": "2026-01-01T00:58:00Z"}}, "Running", "2m", id="running"),
        pytest.param(
            {
                "spec": {},
                "status": {
                    "startTime": "2026-01-01T00:00:00Z",
                    "completionTime": "2026-01-01T00:00:09Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            "Complete",
            "9s",
            id="complete",
        ),
        pytest.param(
            {"spec": {}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}, "Failed", "", id="failed"
        ),
        pytest.param({"metadata": META | {"deletionTimestamp": "x"}, "spec": {}}, "Terminating", "", id="going"),
    ],
)
def test_a_job(item: dict[str, Any], status: str, duration: str) -> None:
    cells = shown("jobs.batch", item)
    assert (cells["Status"], cells["Duration"]) == (status, duration)


def test_the_completions_of_a_job() -> None:
    assert shown("jobs.batch", {"spec": {"completions": 3}, "status": {"succeeded": 1}})["Completions"] == "1/3"


def test_a_deployment() -> None:
    spec = {"replicas": 3, "selector": {"matchLabels": {"b": "c", "a": "b"}}, "template": TEMPLATE}
    cells = shown("deployments.apps", {"spec": spec, "status": {"readyReplicas": 1, "availableReplicas": 1}})
    assert list(cells.values()) == ["1/3", 0, 1, "60m", "a,b", "i,j", "a=b,b=c"]


def test_a_service() -> None:
    spec = {
        "clusterIP": "10.53.0.1",
        "selector": {"b": "c", "a": "b"},
        "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}],
    }
    assert list(shown("services", {"spec": spec}).values()) == [
        "ClusterIP",
        "10.53.0.1",
        "<none>",
        "80/TCP,53/UDP",
        "60m",
        "a=b,b=c",
    ]


@pytest.mark.parametrize(
    ("item", "seen"),
    [
        pytest.param({"lastTimestamp": "2026-01-01T00:59:00Z"}, "60s", id="last"),
        pytest.param({"lastTimestamp": None, "eventTime": "2026-01-01T00:58:00.000000Z"}, "2m", id="of the new kind"),
        pytest.param({"firstTimestamp": "2026-01-01T00:57:00Z"}, "3m", id="first"),
        pytest.param({}, "<unknown>", id="none"),
    ],
)
def test_when_an_event_was_seen(item: dict[str, Any], seen: str) -> None:
    assert shown("events", item)["Last Seen"] == seen


def test_an_event() -> None:
    cells = shown("events", {"involvedObject": {"kind": "UpgradePlan", "name": "demo"}, "message": "a\n", "count": 3})
    assert (cells["Object"], cells["Message"], cells["Count"], cells["Name"]) == ("upgradeplan/demo", "a", 3, "x")


@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
def test_the_number_of_entries(kind: str) -> None:
    assert shown(kind, {"data": {"a": "", "b": ""}})["Data"] == 2
    assert shown(kind, {})["Data"] == 0


@pytest.mark.parametrize("kind", COLUMNS)
def test_an_object_that_says_nothing_has_a_row_too(kind: str) -> None:
    assert len(shown(kind, {})) == len(COLUMNS[kind])
