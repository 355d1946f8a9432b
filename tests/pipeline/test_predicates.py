"""Which changes of an object cause a reconcile at once, which a while later, and which none."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.api.holds import HOLD_STEP
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    NODES,
    PODS,
    SUC_PLANS,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)
from upgrade_manager.kube.store import Change, ChangeKind
from upgrade_manager.pipeline.predicates import MESSAGE_DELAY, reconcile_delay
from upgrade_manager.pipeline.transforms import transform_of

NOW, LATER, NEVER = 0.0, MESSAGE_DELAY, None
NAME = {"name": "one"}
#: The labels of a Job that the system-upgrade-controller created.
OF_A_PLAN = {"labels": {"upgrade.cattle.io/plan": "preload"}}


def met(type_: str, *, status: str = "True", reason: str = "") -> dict[str, Any]:
    """Return a status with that condition."""
    return {"conditions": [{"type": type_, "status": status, "reason": reason}]}


def changed(resource: Resource, old: dict[str, Any] | None, new: dict[str, Any]) -> float | None:
    """Return the delay for an object that changed from one state to another, or that appeared."""
    slim = transform_of(resource, is_whole=False)
    before, after = (
        None if one is None else slim(one | {"metadata": NAME | one.get("metadata", {})}) for one in (old, new)
    )
    return reconcile_delay(
        resource, Change(ChangeKind.ADDED if old is None else ChangeKind.UPDATED, after or {}, before)
    )


#: The metadata of a Job whose command holds before the reboot.
HOLD = {"annotations": {"management.harvesterhci.io/progress": f"8/9 {HOLD_STEP}"}}
STARTED: dict[str, Any] = {"status": {"startTime": "t", "active": 1, "ready": 0, "terminating": 0}}
READY: dict[str, Any] = {"endpoints": [{"conditions": {"ready": True}}, {"conditions": {"ready": False}}]}
UNREADY: dict[str, Any] = {"endpoints": [{"conditions": {"ready": False}}]}


@pytest.mark.parametrize(
    ("resource", "old", "new", "delay"),
    [
        (JOBS, {}, {"metadata": {"resourceVersion": "2", "generation": 2}}, NEVER),
        (JOBS, {}, STARTED, LATER),
        (JOBS, STARTED, {"status": {"startTime": "t", "ready": 1}}, LATER),
        (JOBS, {"spec": {"parallelism": 0}}, {"spec": {"parallelism": 1}}, LATER),
        (JOBS, {}, {"spec": {"suspend": True}}, NOW),
        (JOBS, {}, {"status": {"failed": 1}}, NOW),
        (JOBS, {}, {"status": met("SuccessCriteriaMet")}, LATER),
        (JOBS, {}, {"status": met("Complete")}, NOW),
        (JOBS, {}, {"status": met("FailureTarget", reason="BackoffLimitExceeded")}, NOW),
        (JOBS, {}, {"metadata": {"annotations": {"management.harvesterhci.io/progress": "1/9 wait"}}}, LATER),
        (JOBS, {"status": {"ready": 1}}, {"metadata": HOLD, "status": {"ready": 1}}, NOW),
        (JOBS, {"metadata": HOLD, "status": {"ready": 1}}, {"status": {"ready": 1}}, NOW),
        (JOBS, {}, {"metadata": {"labels": {"a": "b"}}}, NOW),
        (JOBS, {"metadata": OF_A_PLAN}, {"metadata": OF_A_PLAN, "status": met("Complete")}, LATER),
        (JOBS, {"metadata": OF_A_PLAN}, {"metadata": OF_A_PLAN, "status": met("Failed")}, NOW),
        (JOBS, None, STARTED, LATER),
        (JOBS, None, {"status": met("Complete")}, NOW),
        (NODES, {}, {"metadata": {"labels": {"plan.upgrade.cattle.io/preload": "x"}}}, NOW),
        (NODES, {}, {"spec": {"unschedulable": True}}, NOW),
        (NODES, {}, {"spec": {"taints": [{"key": "kubevirt.io/drain"}]}}, NOW),
        (NODES, {}, {"status": met("Ready")}, NOW),
        (NODES, {}, {"metadata": {"annotations": {"csi.volume.kubernetes.io/nodeid": "x"}}}, NEVER),
        (NODES, None, {}, NOW),
        (SUC_PLANS, {}, {"status": met("Complete", status="False", reason="InProgress")}, LATER),
        (SUC_PLANS, {}, {"status": met("Validated", status="False")}, LATER),
        (SUC_PLANS, {}, {"status": {"applying": ["n1"]}}, LATER),
        (SUC_PLANS, {}, {"status": met("Complete")}, NOW),
        (SUC_PLANS, {}, {"status": met("Complete", status="False", reason="JobFailed")}, NOW),
        (SUC_PLANS, {}, {"spec": {"concurrency": 2}}, NOW),
        (SUC_PLANS, None, {}, LATER),
        (DEPLOYMENTS, {"spec": {"replicas": 2}}, {"spec": {"replicas": 2}, "status": {"availableReplicas": 1}}, LATER),
        (DEPLOYMENTS, {"spec": {"replicas": 2}}, {"spec": {"replicas": 2}, "status": {"availableReplicas": 2}}, NOW),
        (DEPLOYMENTS, {"spec": {"replicas": 2}}, {"spec": {"replicas": 1}}, NOW),
        (DEPLOYMENTS, {"status": {"availableReplicas": 1}}, {}, NOW),
        (DEPLOYMENTS, None, {}, LATER),
        (ENDPOINT_SLICES, UNREADY, READY, NOW),
        (ENDPOINT_SLICES, READY, {"endpoints": READY["endpoints"][:1]}, LATER),
        (ENDPOINT_SLICES, READY, {}, NOW),
        (ENDPOINT_SLICES, {}, {"endpoints": [{}]}, NOW),
        (ENDPOINT_SLICES, None, UNREADY, LATER),
        (VIRTUAL_MACHINE_IMAGES, {}, {"metadata": {"generation": 2}, "status": {"progress": 10}}, LATER),
        (VIRTUAL_MACHINE_IMAGES, {}, {"status": met("Imported")}, NOW),
        (VIRTUAL_MACHINE_IMAGES, {}, {"status": {"failed": 1}}, NOW),
        (PODS, {}, {"status": {"phase": "Running"}}, NOW),
        (PODS, {}, {"metadata": {"resourceVersion": "2"}}, NEVER),
        (PODS, None, {}, NOW),
    ],
)
def test_delay_of_a_change(
    resource: Resource, old: dict[str, Any] | None, new: dict[str, Any], delay: float | None
) -> None:
    assert changed(resource, old, new) == delay


@pytest.mark.parametrize(
    ("resource", "metadata", "spec", "delay"),
    [
        (JOBS, OF_A_PLAN, {"parallelism": 0}, LATER),
        (JOBS, OF_A_PLAN, {"parallelism": 1}, NOW),
        (JOBS, {}, {"parallelism": 0}, NOW),
        (JOBS, {}, {}, NOW),
        (PODS, {}, {}, NOW),
    ],
)
def test_delay_of_a_deletion(resource: Resource, metadata: dict[str, Any], spec: dict[str, Any], delay: float) -> None:
    change = Change(ChangeKind.DELETED, {"metadata": NAME | metadata, "spec": spec})
    assert reconcile_delay(resource, change) == delay


@pytest.mark.parametrize("resource", [JOBS, SUC_PLANS, DEPLOYMENTS, ENDPOINT_SLICES, VIRTUAL_MACHINE_IMAGES])
def test_fields_without_a_value_are_empty(resource: Resource) -> None:
    """An exception would lose the change."""
    odd = {"metadata": NAME, "spec": None, "status": None}
    assert reconcile_delay(resource, Change(ChangeKind.UPDATED, odd | {"spec": {"replicas": None}}, odd)) is not None
