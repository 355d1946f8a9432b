"""Reports of upgrades for tests of the page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.support.managers.displayed import NOW, START, TIMED, at, event, milestone, plan, recorded
from upgrade_manager.display.report import Report, report

#: Seconds from the start at which a plan reaches each phase value.
SECONDS = (0, 40, 40, 1300, 1300, 1370, 1370, 1372, 1372, 2500, 2500, 4900, 4900, 10500, 10500, 10900)
#: A text that would run a script if it were not escaped.
HOSTILE_TEXT = "</style></title><script>console.error('run')</script><img src=x onerror=alert(1)> \"' {{ 7 * 7 }}"
RELEASE = {"harvester": "v1.8.0", "os": "Harvester v1.8.0", "kubernetes": "v1.35.4+rke2r1", "rancher": "v2.14.1"}
STRATEGY = {"object": "Cluster fleet-local/local", "field": "spec.rkeConfig.upgradeStrategy", "applied": {"a": "1"}}
UNAVAILABLE = 'no endpoints available for service "rancher-webhook"'
#: A plan's annotations.
ANNOTATIONS = {
    "management.harvesterhci.io/allow-deletion": "true",
    "kubectl.kubernetes.io/last-applied-configuration": "{}",
}
#: In the order of their ends; the last two overlap.
PAST = [
    {
        "reason": "JobSlow",
        "kind": "Job",
        "namespace": "harvester-system",
        "name": "demo-cluster-upgrade",
        "message": "Job harvester-system/demo-cluster-upgrade: it has run for 60 min",
        "since": at(4000),
        "until": at(4900),
    },
    {
        "reason": "DrainFailing",
        "kind": "PodDisruptionBudget",
        "namespace": "default",
        "name": "shop",
        "node": "node-1",
        "message": "Pod default/shop-0 cannot be evicted from node-1: PDB default/shop needs 3 of 3 healthy Pods",
        "since": at(6700),
        "until": at(7250),
    },
    {
        "reason": "RancherSilent",
        "kind": "Deployment",
        "namespace": "cattle-system",
        "name": "rancher",
        "message": "Deployment cattle-system/rancher is scaled to 0 replicas",
        "since": at(7000),
        "until": at(7300),
    },
]


def reached(count: int, *, end: tuple[str, int] | None = None) -> list[dict[str, str]]:
    """Return the timestamps of the first phase values, and of the end."""
    ending = [{"phase": end[0], "phaseTransitionTimestamp": at(end[1])}] if end else []
    return [*recorded(dict(zip(TIMED[:count], SECONDS, strict=False))), *ending]


def node(name: str, *, ready: int, os: str = "Harvester v1.8.0") -> dict[str, Any]:
    """Return a Node that is Ready since that second."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": at(ready)}
    info = {"osImage": os, "kubeletVersion": "v1.35.4+rke2r1"}
    return {"metadata": {"name": name}, "status": {"nodeInfo": info, "conditions": [condition]}}


def steps(name: str, *, begin: int, **seconds: int) -> list[dict[str, Any]]:
    """Return the events of a node's milestones, each that many seconds after the begin."""
    return [milestone(reason, name, second=begin + second) for reason, second in seconds.items()]


def upgraded(name: str, *, begin: int) -> list[dict[str, Any]]:
    """Return the events of a node whose upgrade took 1,850 s."""
    return steps(name, begin=begin, NodeDraining=0, NodeUpgrading=700, NodeRebooting=1400, NodeUpgraded=1850)


def succeeded(nodes: int = 3) -> Report:
    """Return the report of an upgrade whose first node's events have expired."""
    names = [f"node-{index}" for index in range(nodes)]
    status = {
        "currentPhase": "Succeeded",
        "previousVersion": "v1.7.1",
        "releaseMetadata": RELEASE,
        "phaseTransitionTimestamps": reached(16, end=("Succeeded", 10910)),
        "nodeUpgradeStatuses": {name: {"state": "ImageCleaned"} for name in names},
        "pastBlockers": PAST,
    }
    events = [
        *upgraded("node-1", begin=6600),
        *upgraded("node-2", begin=8550),
        event(
            "ReconcileError",
            'no endpoints available for service "rancher-webhook"',
            second=7100,
            count=3,
            lastTimestamp=at(7400),
        ),
        event("SettingRestored", 'Setting x: value restored from "1800" to "600"', second=10500, type_="Normal"),
    ]
    ready = {"node-0": 6590, "node-1": 8450, "node-2": 10400}
    asked = plan(**status)
    asked["metadata"]["annotations"] = ANNOTATIONS
    asked["spec"] |= {"restoreVM": True, "nodeUpgradeOption": {"pauseNodes": ["node-2"]}}
    return report(
        asked,
        events,
        [node(name, ready=ready.get(name, 5000)) for name in names],
        [],
        now=NOW + timedelta(hours=3),
    )


def paused() -> Report:
    """Return the report of an upgrade whose second node was paused for two days."""
    events = [
        *upgraded("node-0", begin=4950),
        *steps("node-1", begin=7000, NodePaused=0, NodeResumed=172800, NodeDraining=172810, NodeUpgrading=180000),
    ]
    return running(190000, events=events, node_0="PostDrained", node_1="PostDraining", node_2="ImagePreloaded")


def failed() -> Report:
    """Return the report of an upgrade that failed at its second node, with hostile texts."""
    status = {
        "currentPhase": "Failed",
        "previousVersion": "v1.7.1",
        "releaseMetadata": RELEASE,
        "phaseTransitionTimestamps": reached(13, end=("Failed", 8200)),
        "nodeUpgradeStatuses": {
            "node-0": {"state": "PostDrained"},
            "node-1": {"state": "PreDrainFailed", "reason": "BackoffLimitExceeded", "message": HOSTILE_TEXT},
            HOSTILE_TEXT: {"state": "ImagePreloaded"},
            "a-name-without-a-place-to-break-" * 7: {"state": "ImagePreloaded"},
        },
        "originals": [STRATEGY],
        "pastBlockers": [
            dict.fromkeys(PAST[1], HOSTILE_TEXT) | {"since": at(6700), "until": at(7250)},
            {"reason": "JobSlow", "since": at(7000)},
        ],
        "nextSteps": [{"text": HOSTILE_TEXT, "command": "kubectl get nodes"}, {"text": "Create a new plan"}],
        "blockers": [{"kind": "Pod", "name": "x", "reason": HOSTILE_TEXT, "message": "m" * 400, "remedy": "r"}],
        "conditions": [
            {"type": "Progressing", "status": "False", "message": f"node-1: pre-drain failed: {HOSTILE_TEXT}"}
        ],
    }
    events = [*upgraded("node-0", begin=4950), *steps("node-1", begin=6850, NodeDraining=0)]
    events.append(event(HOSTILE_TEXT, HOSTILE_TEXT, second=7900, type_=HOSTILE_TEXT))
    return report(plan(**status), events, [node("node-0", ready=6800)], [HOSTILE_TEXT], now=NOW + timedelta(hours=3))


def running(seconds: int = 7500, events: list[dict[str, Any]] | None = None, **nodes: str) -> Report:
    """Return the report of a running node upgrade."""
    status: Mapping[str, Any] = {
        "currentPhase": "NodeUpgrading",
        "phaseTransitionTimestamps": reached(13),
        "nodeUpgradeStatuses": {name.replace("_", "-"): {"state": state} for name, state in nodes.items()},
    }
    return report(plan(**status), events or [], [], [], now=START + timedelta(seconds=seconds))
