"""The verdicts about entries by which users let nodes go on, and about a changed canary."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, node
from tests.support.webhook import webhook
from tests.webhook.test_admission import request
from upgrade_manager.api.keys import ANNOTATION_CONTINUE
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import NODES

STATES = {"node-0": {"state": "PostDraining", "holds": "Reboot"}, "node-1": {"state": "ImagePreloaded"}}
HELD = "; what holds is node-0:Reboot"


def plan(entries: str = "", *, states: Any = STATES, **option: Any) -> Object:
    annotations = {ANNOTATION_CONTINUE: entries} if entries else {}
    return {
        "metadata": {"name": "demo", "annotations": annotations},
        "spec": {"version": "v1.8.0", "nodeUpgradeOption": option},
        "status": {"currentPhase": "NodeUpgrading", "nodeUpgradeStatuses": states},
    }


@pytest.mark.rule("control: the webhook refuses an entry of a node that does not hold there, with what holds")
@pytest.mark.parametrize(
    ("new", "old", "denied"),
    [
        pytest.param(plan("node-0:Reboot"), plan(), "", id="the node holds"),
        pytest.param(plan(), plan("node-0:Reboot"), "", id="an entry less"),
        pytest.param(plan("x"), plan("x"), "", id="an old entry"),
        pytest.param(
            plan("node-0:Drain"), plan(), f"Node node-0 does not hold before its drain{HELD}", id="another step"
        ),
        pytest.param(
            plan("node-0:Reboot, node-1:Drain"),
            plan("node-0:Reboot"),
            f"Node node-1 does not hold before its drain{HELD}",
            id="another node",
        ),
        pytest.param(
            plan("node-9:Drain", states=None),
            plan(states=None),
            "Node node-9 does not hold before its drain; no node holds",
            id="before the nodes",
        ),
        pytest.param(plan("node-0"), plan(), f"'node-0' is not NODE:Drain or NODE:Reboot{HELD}", id="no step"),
        pytest.param(plan("n:reboot"), plan(), f"'n:reboot' is not NODE:Drain or NODE:Reboot{HELD}", id="case"),
        pytest.param(plan(pauseAfter=2), plan(), "", id="a canary"),
        pytest.param(plan(pauseAfter=3), plan(pauseAfter=3), "", id="an old canary"),
        pytest.param(
            plan(pauseAfter=3),
            plan(pauseAfter=2),
            "The cluster has 2 nodes, so that the upgrade never pauses after 3. Use at most 2, or remove it",
            id="a canary beyond the nodes",
        ),
    ],
)
async def test_update_is_checked(new: Object, old: Object, denied: str) -> None:
    admission = webhook.admission(reader=MemoryReader({NODES: [node("node-0"), node("node-1")]}))
    verdict = await admission.decide(request("UPDATE", new=new, old=old))
    assert [finding.problem for finding in verdict.findings] == ([denied] if denied else [])
