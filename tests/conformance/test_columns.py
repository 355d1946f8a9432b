"""Printed columns and cells of `kubectl get`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.kinds import define, drop, widget
from tests.support.server.raw_client import RawClient

pytestmark = pytest.mark.servers

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TEXT = "string"


async def table(api: BareApi, path: str, **query: str) -> dict[str, Any]:
    answer = await RawClient(api.transport, headers={"accept": TABLE}).get(path, **query)
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.body
    return body


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        (
            "/api/v1/nodes",
            "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*",
        ),
        ("/api/v1/namespaces", "Name Status Age"),
        ("/api/v1/pods", "Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*"),
        ("/api/v1/secrets", "Name Type Data Age"),
        ("/api/v1/configmaps", "Name Data Age"),
    ],
)
async def test_built_in_kind_has_its_columns(api: BareApi, path: str, columns: str) -> None:
    """Compare the columns; a star marks those of `-o wide`, a colon precedes a type other than string."""
    definitions = (await table(api, path, limit="1"))["columnDefinitions"]
    found = [
        one["name"].replace(" ", "_")
        + ("*" if one["priority"] else "")
        + ("" if one["type"] == TEXT else f":{one['type']}")
        for one in definitions
    ]
    assert found == columns.split()


def state(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0} | more


@pytest.mark.parametrize(
    ("status", "cells"),
    [
        pytest.param({}, ["0/2", "Pending", "0"], id="new"),
        pytest.param(
            {
                "phase": "Running",
                "containerStatuses": [
                    state("c", ready=True, state={"running": {}}),
                    state("d", restartCount=3, state={"waiting": {"reason": "CrashLoopBackOff"}}),
                ],
            },
            ["1/2", "CrashLoopBackOff", "3"],
            id="crashing",
        ),
        pytest.param({"phase": "Succeeded"}, ["0/2", "Succeeded", "0"], id="succeeded"),
    ],
)
async def test_cells_of_a_pod(api: BareApi, status: dict[str, Any], cells: list[str]) -> None:
    await api.admin.post(api.path("serviceaccounts"), {"metadata": {"name": "runner"}})
    spec = {
        "serviceAccountName": "runner",
        "initContainers": [{"name": "i", "image": "i"}],
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}],
    }
    path = api.path("pods")
    assert (await api.admin.post(path, {"metadata": {"name": "a"}, "spec": spec})).status == 201
    assert (await api.admin.patch(f"{path}/a/status", {"status": status})).status == 200
    (row,) = (await table(api, path))["rows"]
    assert row["cells"][1:4] == cells
    assert row["cells"][5:] == ["<none>"] * 4
    await api.admin.delete(f"{path}/a", {"gracePeriodSeconds": 0})


READY = {"type": "Ready", "status": "True"}
INFO = dict.fromkeys(("architecture", "bootID", "kubeProxyVersion", "machineID", "operatingSystem", "systemUUID"), "")


@pytest.mark.parametrize(
    ("labels", "spec", "status", "cells"),
    [
        pytest.param({}, {}, {}, ["Unknown", "<none>", "", *["<none>"] * 2, *["<unknown>"] * 3], id="new"),
        pytest.param(
            {"node-role.kubernetes.io/etcd": "true", "node-role.kubernetes.io/control-plane": ""},
            {"unschedulable": True},
            {
                "conditions": [READY],
                "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": INFO
                | {"kubeletVersion": "v1", "osImage": "OS", "kernelVersion": "6", "containerRuntimeVersion": "c"},
            },
            ["Ready,SchedulingDisabled", "control-plane,etcd", "v1", "10.0.0.1", "<none>", "OS", "6", "c"],
            id="cordoned",
        ),
        pytest.param(
            {},
            {},
            {"conditions": [READY | {"status": "Unknown"}]},
            ["NotReady", "<none>", "", *["<none>"] * 2, *["<unknown>"] * 3],
            id="unreachable",
        ),
    ],
)
async def test_cells_of_a_node(
    api: BareApi, labels: dict[str, str], spec: dict[str, Any], status: dict[str, Any], cells: list[str]
) -> None:
    node = f"/api/v1/nodes/{api.word}"
    await api.admin.post("/api/v1/nodes", {"metadata": {"name": api.word, "labels": labels}, "spec": spec})
    assert (await api.admin.patch(f"{node}/status", {"status": status})).status == 200
    (row,) = (await table(api, node))["rows"]
    assert [*row["cells"][1:3], *row["cells"][4:]] == cells
    await api.admin.delete(node)


COLUMNS: list[dict[str, Any]] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Share", "type": "number", "jsonPath": ".spec.share"},
    {"name": "Big", "type": "boolean", "jsonPath": ".spec.big"},
    {"name": "When", "type": "date", "jsonPath": ".spec.when"},
    {"name": "List", "type": "string", "jsonPath": ".spec.list"},
    {"name": "First", "type": "string", "jsonPath": ".spec.list[0]"},
    {"name": "All", "type": "string", "jsonPath": ".spec.list[*]"},
    {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Size as text", "type": "string", "jsonPath": ".spec.size"},
    {"name": "Text as number", "type": "integer", "jsonPath": ".spec.when"},
    {"name": "Text as date", "type": "date", "jsonPath": ".spec.list[0]"},
    {"name": "Label", "type": "string", "jsonPath": r".metadata.labels.a\.b/c"},
    {"name": "Big as text", "type": "string", "jsonPath": ".spec.big"},
    {"name": "Share as integer", "type": "integer", "jsonPath": ".spec.share"},
    {"name": "Big as number", "type": "number", "jsonPath": ".spec.big"},
    {"name": "Text as boolean", "type": "boolean", "jsonPath": ".spec.when"},
    {"name": "Size as date", "type": "date", "jsonPath": ".spec.size"},
    {"name": "Wide", "type": "string", "jsonPath": ".spec.map.a", "priority": 1, "format": "password"},
]


@pytest.mark.parametrize(
    ("content", "cells"),
    [
        pytest.param(
            {
                "spec": {
                    "size": 1,
                    "share": 1.5,
                    "big": True,
                    "when": "2999-11-01T00:00:00Z",
                    "list": ["p", "q"],
                    "map": {"a": "b"},
                },
                "status": {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]},
            },
            [
                *(1, 1.5, True, "<invalid>", '["p","q"]', "p", "p", '{"a":"b"}', "True", "1", None, "<invalid>", "L"),
                *("true", 1, None, None, None, "b"),
            ],
            id="full",
        ),
        pytest.param({"spec": {}}, [*[None] * 12, "L", *[None] * 6], id="empty"),
    ],
)
async def test_cells_of_a_custom_kind(api: BareApi, content: dict[str, Any], cells: list[Any]) -> None:
    path = await define(api, additionalPrinterColumns=COLUMNS)
    created = await api.admin.post(
        path, widget(api, "a") | content | {"metadata": {"name": "a", "labels": {"a.b/c": "L"}}}
    )
    assert created.status == 201, created.body
    found = await table(api, path)
    definitions = found["columnDefinitions"][1:]
    assert [(one["name"], one["type"]) for one in definitions] == [(one["name"], one["type"]) for one in COLUMNS]
    assert definitions[0]["description"] == "Custom resource definition column (in JSONPath format): .spec.size"
    assert (definitions[-1]["priority"], definitions[-1]["format"]) == (1, "password")
    assert found["rows"][0]["cells"] == ["a", *cells]
    await drop(api)
