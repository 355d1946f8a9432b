"""Warnings about the deletion of a failed plan."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.webhook.webhook import posted, review
from webhook.mutation import PATH

SINCE = "2026-01-01T00:00:00Z"
UNDO = "kubectl uncordon node-1"
ADVISED = {"kind": "Node", "name": "node-1", "field": "spec.unschedulable", "original": "null", "undo": UNDO}


def entry(kind: str, object_: str) -> dict[str, Any]:
    return {"id": f"{kind}.{object_}", "kind": kind, "object": object_, "since": SINCE}


LEDGER = [
    entry("Strategy", "Cluster fleet-local/local"),
    entry("Taint", "Node node-1"),
    entry("Hold", "Service rancher-system-agent"),
    entry("File", "File /etc/x"),
    entry("StoppedVM", "VirtualMachine shop/db"),
]
FIRST = (
    "The failed upgrade has left what follows. Events of Cluster fleet-local/local have the commands; a retry or "
    "another UpgradePlan settles most of it"
)
FOUND = [
    FIRST,
    "Node node-1 may keep the taint of its drain",
    "Service rancher-system-agent may be held back on nodes",
    "File /etc/x may be left on nodes",
    "VirtualMachine shop/db was stopped for the upgrade, and may be off",
    f"Node node-1: a remedy advised to change spec.unschedulable. If you did, give it back: {UNDO}",
]


async def warned(status: Any, **fields: Any) -> list[str]:
    plan = {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}, "status": status}
    body = review(**{"operation": "DELETE", "object": None, "oldObject": plan, **fields})
    response = (await posted(body, path=PATH)).review
    assert response["allowed"]
    return list(response.get("warnings", []))


@pytest.mark.rule("admission: the deletion of a failed plan warns of what it has left, and of what remedies advised")
@pytest.mark.parametrize(
    ("status", "found"),
    [
        pytest.param({"currentPhase": "Failed", "ledger": LEDGER, "advised": [ADVISED]}, FOUND, id="debts"),
        pytest.param({"currentPhase": "Failed", "ledger": LEDGER[:1]}, [], id="what the Cluster keeps"),
        pytest.param({"currentPhase": "Succeeded", "advised": [ADVISED]}, [], id="succeeded"),
        pytest.param({"currentPhase": "NodeUpgrading", "ledger": LEDGER}, [], id="its finalizer names them"),
        pytest.param({"currentPhase": "Failed", "ledger": "x", "advised": 7}, [], id="invalid"),
        pytest.param(None, [], id="no status"),
    ],
)
async def test_deletion_warns_of_debts(status: Any, found: list[str]) -> None:
    assert await warned(status) == found


async def test_other_requests_have_no_warnings() -> None:
    status = {"currentPhase": "Failed", "ledger": LEDGER}
    assert await warned(status, subResource="status") == []
    assert await warned(status, operation="UPDATE", object={"metadata": {"name": "demo"}, "spec": {}}) == []


async def test_command_is_whole_or_absent() -> None:
    advised = {**ADVISED, "kind": "Volume", "name": "pvc-1", "undo": f"kubectl patch {'x' * 250}"}
    found = await warned({"currentPhase": "Failed", "advised": [advised]})
    assert found[1:] == [
        "Volume pvc-1: a remedy advised to change spec.unschedulable; its event has the command that gives it back"
    ]


async def test_warnings_are_bounded() -> None:
    many = [entry("StoppedVM", f"VirtualMachine shop/{'v' * 300}{number}") for number in range(20)]
    found = await warned({"currentPhase": "Failed", "ledger": many})
    assert len(found) == 17
    assert max(map(len, found)) <= 250
    assert found[-1] == "and 5 more, in status.ledger and status.advised"
