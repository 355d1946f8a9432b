"""Objects that hold the cluster; the runs are in tests/pipeline/test_plan_queue.py and test_holders.py."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts import holders


def conditions(**status: str) -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": one} for type_, one in status.items()]}


def addon(state: str, **failed: str) -> dict[str, Any]:
    status = {"status": state, **conditions(**failed)}
    return {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"enabled": True}, "status": status}


@pytest.mark.parametrize(
    ("state", "failed", "holds"),
    [
        ("AddonEnabling", {}, True),
        ("AddonDisabling", {}, True),
        ("AddonUpdating", {}, True),
        ("AddonEnabling", {"OperationFailed": "False"}, True),
        # It does not end by itself.
        ("AddonEnabling", {"OperationFailed": "True"}, False),
        ("AddonDeploySuccessful", {}, False),
        ("AddonDisabled", {}, False),
        ("", {}, False),
        ("AddonOdd", {}, False),
    ],
)
def test_addon_holds_while_harvester_changes_it(state: str, failed: dict[str, str], *, holds: bool) -> None:
    assert (holders.addon(addon(state, **failed)) is not None) is holds


HOOK = {"workerDrainOptions": {"postDrainHooks": [{"annotation": "management.harvesterhci.io/post-hook"}]}}
FOREIGN = {"workerDrainOptions": {"postDrainHooks": [{"annotation": "example.com/hook"}]}}


@pytest.mark.parametrize(
    ("updated", "strategy", "holds"),
    [
        ("False", {}, True),
        ("Unknown", {}, True),
        ("Unknown", FOREIGN, True),
        ("Unknown", HOOK, False),
        ("True", {}, False),
        ("", {}, False),
    ],
)
def test_rancher_holds_while_it_updates_without_our_hooks(updated: str, strategy: Any, *, holds: bool) -> None:
    status = conditions(Updated=updated) if updated else {}
    spec = {"rkeConfig": {"upgradeStrategy": strategy}}
    found = holders.rancher({"metadata": {"name": "local"}, "spec": spec, "status": status})
    assert (found is not None) is holds


def test_holder_is_named_with_a_command() -> None:
    found = holders.machine({"metadata": {"name": "m"}, "status": {"phase": "Provisioning"}})
    assert str(found) == "Machine fleet-local/m is in phase Provisioning, not Running"
    assert found is not None
    (way,) = found.ways_out
    assert way.command == "kubectl describe machines.cluster.x-k8s.io -n fleet-local m"
