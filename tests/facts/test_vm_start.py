"""Which stopped VMs run, and which are about to."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.vm_start import awaits_instance, runs

row = pytest.param


def machine(strategy: str = "Halted", *requests: str) -> dict[str, Any]:
    status = {"stateChangeRequests": [{"action": action} for action in requests]}
    return {"metadata": {"name": "db"}, "spec": {"runStrategy": strategy}, "status": status}


def instance(phase: str, *, deleting: bool = False) -> dict[str, Any]:
    metadata = {"name": "db", "uid": "u", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})}
    return {"metadata": metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("vm", "found", "expected"),
    [
        row(machine(), None, "off", id="off"),
        row(machine("Always"), None, "starts", id="wanted"),
        row(machine("Manual", "Start"), None, "starts", id="requested"),
        row(machine("Manual"), None, "off", id="not requested"),
        row(machine("Always"), instance("Running"), "runs", id="running"),
        row(machine("Always"), instance("Scheduling"), "starts", id="starting"),
        row(machine("Always"), instance("Failed"), "starts", id="failed, and wanted"),
        row(machine(), instance("Succeeded"), "off", id="ended"),
        row(machine("Always"), instance("Running", deleting=True), "off", id="being deleted"),
        row(machine(), instance("Scheduling"), "off", id="stopping"),
        row(machine("Manual", "Stop"), instance("Scheduling"), "off", id="stop requested"),
    ],
)
def test_start(vm: dict[str, Any], found: dict[str, Any] | None, expected: str) -> None:
    assert (runs(found), awaits_instance(vm, found)) == (expected == "runs", expected == "starts")
