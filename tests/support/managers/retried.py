"""A plan that failed at its second node, and whose next attempt upgrades the rest, for tests of displays."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.support.managers.displayed import START, UID, at, event, plan, recorded
from tests.support.managers.reported import steps, upgraded
from upgrade_manager.api.names import event_digest, of_attempt
from upgrade_manager.kube.objects import Object

#: Seconds from the start: NodeUpgrade begins, the first attempt fails, the second one begins, its node is done.
NODES, FAILED, AGAIN, DONE = 600, 3000, 90000, 91000
CAUSE = "Node node-1: OS upgrade failed 3 times: no space left on device"
FIRST = {"attempt": 1, "begin": at(0), "end": at(FAILED), "phase": "NodeUpgrade", "node": "node-1", "cause": CAUSE}


def moment(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def again(reason: str, node: str, *, second: int) -> dict[str, Any]:
    """Return the event of a node's milestone in the second attempt."""
    digest = event_digest(UID, of_attempt(f"{reason}/{node}", 2))
    return event(reason, f"Node {node}: …", second=second, type_="Normal", name=f"demo.14.n30-{digest}")


def events() -> list[dict[str, Any]]:
    """Return the events of both attempts."""
    return [
        *upgraded("node-0", begin=650),
        *steps("node-1", begin=2600, NodeDraining=0, NodeUpgrading=200),
        event("UpgradeFailed", f"Upgrade failed: {CAUSE}", second=FAILED),
        again("NodeUpgrading", "node-1", second=AGAIN + 10),
        again("NodeRebooting", "node-1", second=AGAIN + 800),
        again("NodeUpgraded", "node-1", second=DONE),
        again("NodeDraining", "node-2", second=DONE + 50),
    ]


def retried(**changes: Any) -> Object:
    """Return the plan during the second attempt."""
    states = {"node-0": ("PostDrained", 2500), "node-1": ("PostDrained", DONE), "node-2": ("PreDraining", DONE + 50)}
    status = {
        "currentPhase": "NodeUpgrading",
        "previousVersion": "v1.7.1",
        "phaseTransitionTimestamps": recorded({"Initializing": 0, "NodeUpgrading": NODES}),
        "nodeUpgradeStatuses": {name: {"state": state, "since": at(since)} for name, (state, since) in states.items()},
        "attempt": 2,
        "attempts": [FIRST, {"attempt": 2, "begin": at(AGAIN)}],
    }
    return plan(**status | changes)


def requested() -> Object:
    """Return the failed plan whose next attempt is requested, and that no manager has begun."""
    failed = retried(
        currentPhase="Failed",
        attempt=1,
        attempts=[FIRST],
        nextSteps=[{"text": "Correct the cause, then retry", "command": "upgrade-manager retry demo"}],
        display={"state": "Failed: NodeUpgradeFailed"},
        conditions=[
            {"type": "Degraded", "status": "True", "reason": "UpgradeFailed", "message": CAUSE},
            {"type": "Available", "status": "False", "reason": "Executed", "message": "Failed in NodeUpgrade"},
        ],
    )
    failed["status"]["phaseTransitionTimestamps"].append({"phase": "Failed", "phaseTransitionTimestamp": at(FAILED)})
    failed["spec"]["attempt"] = 2
    return failed
