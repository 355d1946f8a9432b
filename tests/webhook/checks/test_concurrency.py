from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import UPGRADE_PLANS
from webhook.checks.concurrency import CHECK

INTERVAL = {"object": "Setting longhorn-system/replica-replenishment-wait-interval", "field": "value"}
STRATEGY = {"object": "Cluster fleet-local/local", "field": "spec.rkeConfig.upgradeStrategy"}


def plan(phase: str, progressing: str = "", *, name: str = "other", **status: Any) -> Object:
    condition = {"type": "Progressing", "status": progressing, "reason": "Reason", "message": "Message"}
    conditions = [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}] if progressing else []
    return named(name, status={"currentPhase": phase, "conditions": conditions, **status})


BUSY = [("Initializing", "True"), ("CleaningUp", "False")]
NAMELESS = plan("NodeUpgrading", "True") | {"metadata": None}
IN_PROGRESS = "UpgradePlan other is in progress (phase {}). Wait until it has ended: kubectl wait "


@pytest.mark.rule("admission: another plan that is in progress or cleans up denies a new one, by name")
@pytest.mark.parametrize(
    ("plans", "expected"),
    [
        pytest.param([], [], id="no other"),
        pytest.param([plan("Succeeded", "False"), plan("Failed", "False")], [], id="ended"),
        pytest.param([plan("")], [], id="not accepted"),
        pytest.param([plan("ImagePreloading", "True", name="demo")], [], id="the plan itself"),
        pytest.param([plan("NodeUpgrading", "True")], [IN_PROGRESS.format("NodeUpgrading")], id="in progress"),
        pytest.param([plan("CleaningUp", "False")], [IN_PROGRESS.format("CleaningUp")], id="cleaning up"),
        pytest.param([plan("Failed", "False", originals=[INTERVAL, STRATEGY])], [], id="restoring"),
        pytest.param([plan(*one) for one in BUSY], [IN_PROGRESS.format(phase) for phase, _ in BUSY], id="two"),
        pytest.param([named("other"), named("other", status=None)], [], id="no status"),
        pytest.param([named("other", status={"conditions": None, "originals": {}})], [], id="wrong types"),
        pytest.param([NAMELESS], ["is in progress (phase NodeUpgrading)"], id="no name"),
    ],
)
async def test_concurrency(plans: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({UPGRADE_PLANS: plans})), expected)
