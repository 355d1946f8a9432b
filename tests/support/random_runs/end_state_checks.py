"""Checks of a random run's end state; one sentence for each error."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.support.cluster.cluster_state import stored, title, update_methods
from tests.support.cluster.host_changes import changed_hosts
from tests.support.managers.announcements import milestones
from tests.support.managers.exactly_once import SUCCESS_EVENTS
from tests.support.managers.upgrade import condition, phases_of, provision_generation
from upgrade_manager.api.history import ENDED
from upgrade_manager.api.keys import (
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    LABEL_PLAN,
    PREFIX,
    TAINT_KUBEVIRT_DRAIN,
    ToolkitKind,
)
from upgrade_manager.api.names import history_config_map
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED, phase_of
from upgrade_manager.facts.machine_plan import is_pending
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES, SECRETS, SERVICES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import TypeAlias

    from hack.simulation import Simulation
    from tests.support.managers.upgrade import UpgradeRun
    from tests.support.random_runs.random_plan import Failing
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

    #: The values that each object may have, by its title.
    Before: TypeAlias = Mapping[str, tuple[Any, ...]]

_OTHER = "another-owner"
_LOCAL = "Cluster fleet-local/local"
_METHODS = "KubeVirt's update methods"
#: Virtual seconds in which Rancher upgrades a node.
_LONG = 120.0
_SUC_LABEL = "plan.upgrade.cattle.io/"
_BLOCKED = ("False", "ConcurrentUpgradeBlocked")
#: Objects with the plan's label that another owner controls; they must not change.
_DECOYS: tuple[tuple[Resource, Object], ...] = (
    (SECRETS, {"metadata": {"namespace": "cattle-system"}, "data": {"a": "Yg=="}}),
    (SERVICES, {"metadata": {"namespace": "harvester-system"}, "spec": {"ports": [{"port": 80}]}}),
)


async def plant(simulation: Simulation) -> None:
    """Create the other owner's objects."""
    labels = {LABEL_PLAN: _OTHER}
    for resource, decoy in _DECOYS:
        meta = {**decoy["metadata"], "name": _OTHER, "labels": labels}
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **decoy, "metadata": meta}
        await simulation.client().create(resource, manifest)


async def others(simulation: Simulation) -> dict[str, Any]:
    """Return what an upgrade must not change, or must restore."""
    found = {title(obj): obj for obj in await stored(simulation)}
    # KubeVirt itself follows, as soon as Fleet has deployed the chart.
    kept: dict[str, Any] = {_METHODS: update_methods(found)[:2]}
    for name, obj in found.items():
        if objects.labels(obj).get(LABEL_PLAN) == _OTHER:
            kept[name] = obj
        elif name == "Setting longhorn-system/replica-replenishment-wait-interval":
            kept[name] = obj["value"]
        elif name == "Addon kube-system/descheduler":
            kept[name] = objects.spec(obj).get("enabled")
        elif name == _LOCAL:
            kept[name] = (objects.spec(obj).get("rkeConfig") or {}).get("upgradeStrategy")
    return kept


async def check_others(simulation: Simulation, before: Before, *, strategy: bool = True) -> list[str]:
    """Check that all of that has one of these values; `strategy` says if Rancher's must have its original."""
    after = await others(simulation)
    found = _changed({name: values for name, values in before.items() if strategy or name != _LOCAL}, after)
    return [*found, *(["Rancher's strategy has hooks"] if PREFIX in json.dumps(after.get(_LOCAL)) else [])]


def _changed(before: Before, after: dict[str, Any]) -> list[str]:
    changed = [name for name, values in before.items() if after.get(name) not in values]
    return [f"{name} was {before[name]}, and is {after.get(name)}" for name in changed]


async def check_nodes(simulation: Simulation) -> list[str]:
    """Check that every node runs the release, is Ready and schedulable, and that no hook waits for the manager."""
    release, client = simulation.scenario.release, simulation.client()
    errors = []
    for node in (await client.list(NODES)).items:
        info = node["status"]["nodeInfo"]
        if (info["osImage"], info["kubeletVersion"]) != (release.os_image, release.kubernetes):
            errors.append(f"{title(node)} runs {info['osImage']} with {info['kubeletVersion']}")
        if objects.spec(node).get("unschedulable") or not objects.is_condition_true(node, "Ready"):
            errors.append(f"{title(node)} is cordoned or not Ready")
        if any(taint["key"] == TAINT_KUBEVIRT_DRAIN for taint in objects.spec(node).get("taints") or ()):
            errors.append(f"{title(node)} keeps the taint {TAINT_KUBEVIRT_DRAIN}")
    secrets = (await client.list(SECRETS, namespace=FLEET_LOCAL)).items
    pending = filter(is_pending, secrets)
    return [*errors, *(f"{title(secret)} has a pending hook" for secret in pending)]


async def check_hosts(stage: UpgradeRun) -> list[str]:
    """Check that no running host keeps a hold on its agent or a file of the upgrade, unless the plan names it.

    Harvester's own toolkit holds agents back without a record, until each node's reboot.
    """
    if stage.options.toolkit.kind is not ToolkitKind.OWN:
        return [found for found in changed_hosts(stage.simulation) if not found.endswith("has a hold")]
    plan = await stage.plan()
    text = json.dumps(objects.status(plan).get("conditions"))
    hosts = stage.simulation.hosts
    left = [found for found in changed_hosts(stage.simulation) if hosts.of(found.partition(" ")[0]).up]
    return [found for found in left if f"{found.partition(' ')[0]} may keep" not in text]


async def check_frozen(stage: UpgradeRun, before: Before, *, strategy: bool) -> list[str]:
    """Check that a failed plan has given its settings back, and that no node changes after its end.

    `strategy` says if Rancher's must have its original, unless nodes are frozen; else users may free the nodes.
    """
    plan, simulation = await stage.plan(), stage.simulation
    kept = {_LOCAL} if "NodeUpgrading" in phases_of(plan) or not strategy else set()
    settings = {name: values for name, values in before.items() if name not in kept}
    errors = _changed(settings, await others(simulation))
    first = await _versions(simulation)
    await asyncio.sleep(_LONG)
    # Interference may have deleted a Node, which comes back.
    changed = [
        name for name, versions in (await _versions(simulation)).items() if versions != first.get(name, versions)
    ]
    if not strategy and PREFIX not in json.dumps((await others(simulation)).get(_LOCAL)):
        return errors
    return errors + [f"{name} changed after the end of plan {stage.name}" for name in changed]


async def _versions(simulation: Simulation) -> dict[str, tuple[str, int]]:
    """Return kubelet and boots of each node."""
    return {
        objects.name(node): (
            node["status"]["nodeInfo"]["kubeletVersion"],
            simulation.hosts.of(objects.name(node)).boots,
        )
        for node in (await simulation.client().list(NODES)).items
    }


async def check_success(stage: UpgradeRun, *, exact: bool = True) -> list[str]:
    """Check that the plan succeeded, with one event for every step; `exact` unless others raised the generation."""
    plan, errors = await stage.plan(), []
    if phases_of(plan) != [*PHASE_VALUES, SUCCEEDED]:
        errors.append(f"plan {stage.name}'s phases are {phases_of(plan)}: {condition(plan, 'Progressing')}")
    if condition(plan, "Degraded") != ("False", "ReconcileSuccess", ""):
        errors.append(f"plan {stage.name} is Degraded: {condition(plan, 'Degraded')}")
    generation = objects.status(plan).get("provisionGeneration")
    now = await provision_generation(stage.simulation)
    if generation not in {None, now} and (exact or generation > now):
        errors.append(f"plan {stage.name} recorded generation {generation}, the cluster has {now}")
    errors += [f"plan {stage.name}: {text}" for text in await _event_errors(stage, plan)]
    return errors


async def _event_errors(stage: UpgradeRun, plan: Object) -> list[str]:
    """Report events that were not recorded once, or, of what attempts repeat, once in each attempt."""
    counts, own, attempts = Counter[str](), [], objects.status(plan).get("attempt") or 1
    for event in await stage.events():
        if event["involvedObject"].get("uid") == objects.uid(plan):
            counts[event["message"]] += event["count"]
            own.append(event)
    wrong = [f"{text!r} was recorded {counts[text]} times" for text in SUCCESS_EVENTS if counts[text] != 1]
    wrong += [f"{one!r} was recorded {count} times" for one, count in milestones(own).items() if count > attempts]
    return wrong


async def check_failure(stage: UpgradeRun, failing: Failing) -> list[str]:
    """Check that the plan failed in its phase."""
    plan = await stage.plan()
    *_, last, end = ["", *phases_of(plan)]
    status, reason, _ = condition(plan, "Progressing")
    if (phase_of(last), end, status) == (failing.phase, FAILED, "False") and reason in {"Failed", "Refused"}:
        return []
    return [f"plan {stage.name} should fail for {failing.what}, and its phases are {phases_of(plan)}"]


async def check_queued(stage: UpgradeRun) -> list[str]:
    """Check that a second plan has only what a plan in the queue has."""
    plan = await stage.plan()
    fields = sorted(objects.status(plan))
    expected = ["conditions", "display", "observedGeneration", "queuedSince"]
    if fields == expected and condition(plan, "Available")[:2] == _BLOCKED:
        return []
    return [f"plan {stage.name} should be in the queue, and its status is {json.dumps(objects.status(plan))}"]


async def check_leftovers(simulation: Simulation, plans: Collection[str]) -> list[str]:
    """Check that no object of these plans is left, except the complete histories of those that exist."""
    found = await stored(simulation)
    histories = {_history(objects.name(obj)) for obj in found if obj["kind"] == "UpgradePlan"}
    complete = {title(obj) for obj in found if obj["kind"] == "ConfigMap" and (obj.get("data") or {}).get(ENDED)}
    errors = [f"{name} is missing, or has no end" for name in sorted(histories - complete)]
    for obj in found:
        name, labels = title(obj), objects.labels(obj)
        if labels.get(LABEL_PLAN) in plans and name not in histories:
            errors.append(f"{name} is left over")
        if obj["kind"] == "Node":
            marks = [key for key in labels if key.startswith(_SUC_LABEL)]
            marks += [key for key in objects.annotations_of(obj) if key.startswith(f"{PREFIX}/")]
            errors += [f"{name} has {mark}" for mark in marks]
    return errors


def _history(plan: str) -> str:
    return f"ConfigMap {HARVESTER_SYSTEM}/{history_config_map(plan)}"
