from __future__ import annotations

import json
from typing import Any

import pytest

from hack.bench.phase_changes import phase_changes
from hack.bench.recorder import Exchange
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube.transport import Request

PLAN = "/apis/management.harvesterhci.io/v1beta1/upgradeplans/demo"
IMAGE = {"kind": "VirtualMachineImage", "metadata": {"uid": "1"}}
IMPORTED = {**IMAGE, "status": {"conditions": [{"type": "Imported", "status": "True"}]}}


def write(who: str, began: float, obj: dict[str, Any] | None = None, **more: str) -> Exchange:
    path, body = more.get("path", "/api/v1/x"), more.get("body", "")
    return Exchange(
        request=Request(method="PATCH", path=path, headers={"user-agent": who}, body=body.encode()),
        status=200,
        began=began,
        ended=began + 1,
        body=json.dumps(obj).encode() if obj else b"",
    )


def manager_write(began: float, path: str = "/api/v1/x") -> Exchange:
    return write("manager/1", began, path=path)


def record(began: float, phase: str = "") -> Exchange:
    status: dict[str, Any] = {"currentPhase": phase} if phase else {"conditions": []}
    return write("manager/1", began, path=f"{PLAN}/status", body=json.dumps({"status": status}))


def found(*exchanges: Exchange) -> dict[PhaseName, float]:
    return phase_changes(exchanges, manager="manager")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(record(12), id="a status without a phase"),
        pytest.param(manager_write(12, "/api/v1/namespaces/default/events"), id="an event"),
        pytest.param(write("images", 12, IMPORTED), id="an unrelated change of the object"),
    ],
)
def test_other_writes_do_not_end_a_phase_change(other: Exchange) -> None:
    writes = [record(0, "ISODownloading"), write("images", 10, IMPORTED), other]
    assert found(*writes, manager_write(20), record(22, "RepoCreating")) == {PhaseName.ISO_DOWNLOAD: 9}
