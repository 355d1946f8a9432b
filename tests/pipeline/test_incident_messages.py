"""Messages of incidents as an operator reads them, each by the product itself in a simulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack import scenario as scenarios
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.simulate import SECOND
from tests.support.managers.incident_table import INCIDENTS
from tests.support.managers.incidents import held_up
from tests.support.managers.upgrade import condition, started
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.ending.held_nodes import WITHOUT_MANAGER

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

WAITS_FOR_RANCHER = "waiting for Rancher to upgrade the next node (0 of 3 nodes done)"


def first_blocker(plan: Object) -> tuple[str, str]:
    """Return reason and message of the first blocker."""
    found = [(one["reason"], one["message"]) for one in objects.status(plan).get("blockers") or []]
    return found[0] if found else ("", "")


@pytest.mark.rule("blockers: a message has the object, what holds it up, and the cause")
@pytest.mark.parametrize(
    ("incident", "reason", "message", "progressing"),
    [
        pytest.param(
            "pdb",
            "DrainFailing",
            "Pod default/shop-node-0 cannot be evicted from node-0: PodDisruptionBudget default/shop needs 3 of 3 "
            "healthy Pods",
            "node-0: waiting for Rancher to drain it and upgrade its Kubernetes (0 of 3 nodes done); {}",
            id="PodDisruptionBudget",
        ),
        pytest.param(
            "planner",
            "RancherSilent",
            "Cluster fleet-local/local: Rancher has not started the next node for over 10 min and reports no reason "
            "(0 of 3 nodes done)",
            f"{WAITS_FOR_RANCHER}; Cluster fleet-local/local: Rancher has not started the next node for over 10 min "
            "and reports no reason",
            id="Rancher",
        ),
        pytest.param(
            "reboot",
            "NodeNotBack",
            "Node node-2: it rebooted at 00:01 UTC on 1 January into the old system, Harvester v1.7.1 (boot fallback)",
            "node-2: it rebooted at 00:01 UTC on 1 January into the old system, Harvester v1.7.1 (boot fallback). Find "
            "out on node node-2 why it booted the fallback: journalctl -b -1 --no-pager -n 100 (1 of 3 nodes done)",
            id="boot fallback",
        ),
        pytest.param(
            "unschedulable",
            "PodUnschedulable",
            "3 Pods on node-0, node-1, node-2 cannot be scheduled: taint example.com/maintenance",
            "Images loaded on 0 of 3 nodes, waiting for node-0, node-1, node-2; {}",
            id="taint",
        ),
        pytest.param(
            "paused",
            "NodePaused",
            "Node node-0: it is next and paused by you",
            "node-0 is paused (cordoned); remove it from spec.nodeUpgradeOption.pauseNodes to continue (0 of 3 nodes "
            "done)",
            id="pause",
        ),
    ],
)
async def test_message_of_an_incident(incident: str, reason: str, message: str, progressing: str) -> None:
    async with held_up(INCIDENTS[incident]) as run:
        plan = await run.plan()
    assert first_blocker(plan) == (reason, message)
    assert condition(plan, "Progressing")[2] == progressing.format(message)


@pytest.mark.rule("blockers: a message has the object, what holds it up, and the cause")
async def test_message_of_a_webhook_that_refuses_a_job() -> None:
    words = (
        'Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: Post '
        '"https://policy.a.svc:443/x?timeout=10s": dial tcp 10.53.0.9:443: connect: connection refused'
    )
    refusal = Refuse(status=500, reason="InternalError", message=words)
    async with Simulation() as simulation, started(simulation) as stage:
        await stage.until_plan(lambda plan: condition(plan, "Progressing")[2] == WAITS_FOR_RANCHER)
        simulation.middleware.add(Rule(match=Match(verbs=("create",), resource="jobs.batch"), action=refusal))
        plan = await stage.until_plan(lambda plan: bool(first_blocker(plan)[0]))
    message = "Webhook policy.example.com (connection refused) blocks creating the pre-drain Job of node-0"
    assert first_blocker(plan) == ("WriteRefused", message)


KEPT = (
    "The image of the ISO stays, 6.4 GiB in each replica of its volume, until this plan is deleted or another one has "
    "passed its checks"
)
FULL = "no space left on device"
FAULT: dict[str, Any] = {"faults": [{"work": "post-drain", "node": SECOND, "message": FULL}]}


@pytest.mark.rule("status: a failed plan says where it failed, why, and what to do")
async def test_messages_of_a_node_that_cannot_be_upgraded() -> None:
    async with Simulation(scenarios.load("three-nodes").changed(**FAULT)) as simulation, started(simulation) as stage:
        plan = await stage.fail()
    log = f"kubectl logs -n harvester-system job/upgrade-node-upgrade-post-drain-{SECOND}"
    cause = f"Node {SECOND}: OS upgrade failed 3 times: {FULL}"
    assert condition(plan, "Available")[2] == (
        f"Failed in NodeUpgrade: 1 of 3 nodes upgraded, {SECOND} cordoned. Next step: see Degraded"
    )
    assert condition(plan, "Progressing")[2] == f"{cause}. Log: {log}"
    assert condition(plan, "Degraded")[2] == (
        f"{cause}. {KEPT}. Do not uncordon {SECOND}; correct the cause, then retry: upgrade-manager retry upgrade"
    )
    steps = [one["text"] for one in objects.status(plan)["nextSteps"]]
    assert steps[:2] == [
        f"Do not uncordon {SECOND}; correct the cause, then retry",
        "Upgraded nodes keep the new release: node-0",
    ]
    assert steps[2].startswith(f"Node {SECOND} stays cordoned, because Rancher waits for this manager (Secret ")
    assert steps[2].endswith("Do not uncordon it: the next attempt or UpgradePlan continues there")
    waits = "drain hooks in Cluster fleet-local/local keep Rancher from upgrading it with VMs running there"
    assert steps[3:] == [
        f"Node node-1 waits: {waits}. Do not remove the hooks",
        KEPT,
        "The log of the failed Job has the cause",
        "Or retry with kubectl",
        WITHOUT_MANAGER.text,
    ]
