"""Error messages for attempts that users request at the wrong time, without the webhook."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cluster.kubectl import Cluster, manifest

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]

NEW = "spec.attempt is 1 or absent in a new UpgradePlan; it is raised by one after a failure"
RAISED = "spec.attempt can only be raised, by one, while status.currentPhase is Failed"
FAILED: dict[str, Any] = {"currentPhase": "Failed"}
SECOND: dict[str, Any] = {"currentPhase": "Failed", "attempt": 2}


async def put(cluster: Cluster, spec: dict[str, Any], status: dict[str, Any]) -> None:
    """Create the plan in that state."""
    attempt = spec.pop("attempt", 1)
    await cluster.succeed("create", "-f", "-", stdin=manifest(**spec))
    if attempt > 1:
        await patch_status(cluster, {"currentPhase": "Failed", "attempt": attempt - 1})
        await cluster.succeed("patch", "up", "demo", "--type=merge", "-p", json.dumps({"spec": {"attempt": attempt}}))
    if status:
        await patch_status(cluster, status)


async def patch_status(cluster: Cluster, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    await cluster.succeed("patch", "up", "demo", "--subresource=status", "--type=merge", "-p", patch)


@pytest.mark.rule("control: spec.attempt is raised by one while the plan is Failed; every other change is one refusal")
@pytest.mark.parametrize(
    ("spec", "status", "patch", "message"),
    [
        pytest.param({}, {}, {"attempt": 2}, f"spec.attempt: Forbidden: {NEW}", id="raised before a manager runs"),
        pytest.param({}, {"currentPhase": "NodeUpgrading"}, {"attempt": 2}, RAISED, id="raised on a running plan"),
        pytest.param({}, {"currentPhase": "Succeeded"}, {"attempt": 2}, RAISED, id="raised on a succeeded plan"),
        pytest.param({}, FAILED, {"attempt": 3}, RAISED, id="raised by two"),
        pytest.param({"attempt": 2}, SECOND, {"attempt": 4}, RAISED, id="raised by two after the second one"),
        pytest.param({"attempt": 2}, SECOND, {"attempt": 1}, RAISED, id="lowered"),
        pytest.param({"attempt": 2}, SECOND, {"attempt": None}, RAISED, id="removed"),
        pytest.param({"attempt": 2}, FAILED, {"attempt": 3}, RAISED, id="raised twice before a manager runs"),
        pytest.param(
            {}, FAILED, {"attempt": 0}, "spec.attempt in body should be greater than or equal to 1", id="zero"
        ),
        pytest.param({}, FAILED, {"attempt": 2, "version": "v2"}, "spec.version is immutable", id="with a version"),
        pytest.param({}, FAILED, {"attempt": 2, "image": "i"}, "spec.image is immutable", id="with an image"),
    ],
)
@pytest.mark.thin
async def test_attempt_that_cannot_be_requested_is_refused(
    cluster: Cluster, spec: dict[str, Any], status: dict[str, Any], patch: dict[str, Any], message: str
) -> None:
    await put(cluster, {"version": "v1", **spec}, status)
    refused = await cluster.fail("patch", "up", "demo", "--type=merge", "-p", json.dumps({"spec": patch}))
    assert refused.startswith('The UpgradePlan "demo" is invalid: spec.')
    assert message in refused
    # One refusal each.
    assert len(refused.strip().splitlines()) == 1


async def test_attempt_is_raised_after_each_failure_with_other_options(cluster: Cluster) -> None:
    await put(cluster, {"version": "v1"}, FAILED)
    for attempt, more in ((2, {"force": True}), (3, {"nodeUpgradeOption": {"pauseNodes": ["a"]}})):
        patch = json.dumps({"spec": {"attempt": attempt, **more}})
        await cluster.succeed("patch", "up", "demo", "--type=merge", "-p", patch)
        await patch_status(cluster, {"currentPhase": "NodeUpgrading", "attempt": attempt})
        await patch_status(cluster, {"currentPhase": "Failed"})


async def test_new_plan_has_no_second_attempt(cluster: Cluster) -> None:
    message = await cluster.fail("create", "-f", "-", stdin=manifest(version="v1", attempt=2))
    assert f"spec.attempt: Forbidden: {NEW}" in message
    await cluster.succeed("create", "-f", "-", stdin=manifest(version="v1", attempt=1))
