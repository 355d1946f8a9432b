"""Plans, events and views for tests of displays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from upgrade_manager.api.names import event_digest
from upgrade_manager.api.phases import PHASE_VALUES, PhaseName
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.display.model import View
from upgrade_manager.display.view import build

START = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
#: The time at which the plan of `running_view` is shown.
NOW = START + timedelta(minutes=72)
UID = "2f4a"
#: The phase values that have times in the tests of displays.
TIMED = (
    *("Initializing", "Initialized", "ISODownloading", "ISODownloaded"),
    *("RepoCreating", "RepoCreated", "MetadataPopulating", "MetadataPopulated"),
    *("ImagePreloading", "ImagePreloaded", "ClusterUpgrading", "ClusterUpgraded"),
    *("NodeUpgrading", "NodeUpgraded", "CleaningUp", "CleanedUp"),
)
#: A plan as a user creates it.
MANIFEST = {
    "apiVersion": "management.harvesterhci.io/v1beta1",
    "kind": "UpgradePlan",
    "metadata": {"name": "demo"},
    "spec": {"version": "v1.8.0"},
}


def at(seconds: float) -> str:
    return format_time(START + timedelta(seconds=seconds))


def times(*phases: str, step: int = 1) -> list[dict[str, str]]:
    """Return timestamps of phases, `step` seconds apart."""
    return [{"phase": phase, "phaseTransitionTimestamp": at(index * step)} for index, phase in enumerate(phases)]


def recorded(seconds: Mapping[str, float]) -> list[dict[str, str]]:
    """Return timestamps of phase values up to the last of these; a phase that has no time here takes none."""
    entries, now = [], 0.0
    for value in PHASE_VALUES[: max(map(PHASE_VALUES.index, seconds)) + 1]:
        now = seconds.get(value, now)
        entries.append({"phase": value, "phaseTransitionTimestamp": at(now)})
    return entries


def without(phase: PhaseName) -> dict[str, Any]:
    """Return the plan of `running_view`, begun by a manager that had no such phase."""
    begun = running_plan()
    entries = begun["status"]["phaseTransitionTimestamps"]
    kept = [entry for entry in entries if entry["phase"] not in {phase.active, phase.completed}]
    begun["status"]["phaseTransitionTimestamps"] = kept
    return begun


#: A command that is wider than a terminal of 80 columns, and the one that undoes it.
_PATCH = "kubectl patch pdb -n default shop --type=merge -p"
ALLOW = f"""{_PATCH} '{{"spec":{{"minAvailable":null,"maxUnavailable":1}}}}'"""
DISALLOW = f"""{_PATCH} '{{"spec":{{"minAvailable":3,"maxUnavailable":null}}}}'"""


def plan(**status: Any) -> dict[str, Any]:
    """Return a plan with this status."""
    return {"metadata": {"name": "demo", "uid": UID}, "spec": {"version": "v1.8.0"}, "status": status}


def event(reason: str, message: str, *, second: int = 0, type_: str = "Warning", **more: Any) -> dict[str, Any]:
    """Return an event of the plan."""
    time = at(second)
    name = {"name": more.pop("name", f"demo.{second}")}
    return {
        "metadata": name,
        "type": type_,
        "reason": reason,
        "message": message,
        "firstTimestamp": time,
        "lastTimestamp": time,
        **more,
    }


def milestone(reason: str, node: str, *, second: int) -> dict[str, Any]:
    """Return the event of a node's milestone."""
    name = f"demo.14.n30-{event_digest(UID, f'{reason}/{node}')}"
    return event(reason, f"Node {node}: …", second=second, type_="Normal", name=name)


def condition(type_: str, message: str) -> dict[str, str]:
    """Return a condition that is True."""
    return {"type": type_, "status": "True", "reason": "Test", "message": message, "lastTransitionTime": at(0)}


def running_plan() -> dict[str, Any]:
    """Return a plan that a node holds up."""
    waiting = "node-1: rebooting for 18 min; NotReady since 12:54:00; check its console (1 of 3 nodes done)"
    blocker = {
        "kind": "PodDisruptionBudget",
        "namespace": "default",
        "name": "shop",
        "node": "node-1",
        "reason": "DrainFailing",
        "message": "PodDisruptionBudget default/shop: it keeps Pod shop-1 on node node-1 (it allows no disruption)",
        "remedy": f"(1) Add a replica to its workload (2) Or allow one Pod to be down: {ALLOW}",
        "remedies": [
            {"text": "Add a replica to its workload"},
            {"text": "Or allow one Pod to be down", "command": ALLOW, "undo": DISALLOW},
        ],
        "since": at(3600),
    }
    status = {
        "currentPhase": "NodeUpgrading",
        "previousVersion": "v1.7.1",
        "createdBy": "alice",
        "toolkitImage": {"repository": "registry/toolkit", "tag": "v1.8.0", "kind": "own"},
        "estimatedCompletion": at(72 * 60 + 48 * 60),
        "phaseTransitionTimestamps": recorded({value: 120 * index for index, value in enumerate(TIMED[:13])}),
        "conditions": [
            condition("Progressing", waiting),
            condition("Degraded", "patch nodes node-1: 500 InternalError"),
        ],
        "nodeUpgradeStatuses": {
            "node-0": {"state": "PostDrained"},
            "node-1": {"state": "WaitingReboot", "reason": "NotReady", "message": "expects Harvester v1.8.0"},
            "node-2": {"state": "ImagePreloaded"},
        },
        "blockers": [blocker],
    }
    return plan(**status)


def running_view() -> View:
    """Return the view of that plan."""
    events = [
        milestone("NodeUpgraded", "node-0", second=2400),
        milestone("NodeRebooting", "node-1", second=3240),
        event("DrainFailing", "Pod instance-manager-0 cannot be evicted", second=3600, count=3),
    ]
    return build(running_plan(), events, now=NOW)
