"""Plans as managers without a ledger leave them: what stands in the ledger is moved to the place of each manager.

An earlier version runs until a phase or node state (earlier_version.py) and dies; then its plan is rewritten so.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tests.support.cluster.host_changes import undo_changes
from upgrade_manager.api.keys import ANNOTATION_ORIGINAL_STRATEGY, ANNOTATION_UPGRADE_STRATEGY, FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS, UPGRADE_PLANS
from upgrade_manager.pipeline.settings.overrides import DESCHEDULER, INTERVAL, STRATEGY

if TYPE_CHECKING:
    from tests.support.managers.upgrade import UpgradeRun
    from upgrade_manager.kube.objects import Object


class Earlier(StrEnum):
    """The managers without a ledger."""

    #: This manager, which recorded settings in status.originals.
    ORIGINALS = "originals"
    #: Version 0.1, which recorded them in annotations of the plan, and gave them back at its end.
    ANNOTATIONS = "annotations"
    #: The Go manager, which did not record Rancher's strategy.
    GO = "go"


async def leave(stage: UpgradeRun, manager: Earlier, before: Object) -> None:
    """Rewrite the plan, the settings and Rancher's Cluster as that manager leaves them.

    `before` is the Cluster before the upgrade.
    """
    plan = await stage.plan()
    entries = objects.status(plan).get("ledger") or []
    await undo_changes(stage.simulation)
    if manager is Earlier.ORIGINALS:
        fields = ("object", "field", "original", "applied")
        kept = [entry for entry in entries if "field" in entry and entry["kind"] in {"Setting", "Strategy"}]
        originals = [{key: entry[key] for key in fields if key in entry} for entry in kept]
        await _status(stage, {"ledger": None, "originals": originals or None})
        return
    await _hold_settings(stage, before)
    record = _record(before) if manager is Earlier.ANNOTATIONS and _has_entered(plan) else {}
    await stage.client.patch(UPGRADE_PLANS, stage.name, MergePatch({"metadata": {"annotations": record}}))
    await _status(stage, {"ledger": None, "staleHooks": None})
    annotations = {"metadata": {"annotations": {ANNOTATION_ORIGINAL_STRATEGY: None}}}
    await stage.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(annotations), namespace=FLEET_LOCAL)


def _has_entered(plan: Object) -> bool:
    reached = objects.status(plan).get("phaseTransitionTimestamps") or []
    return any(one["phase"] == "NodeUpgrading" for one in reached)


def _record(before: Object) -> dict[str, Any]:
    config = objects.spec(before).get("rkeConfig") or {}
    record = {
        "provisionGeneration": config.get("provisionGeneration") or 0,
        "upgradeStrategy": config.get("upgradeStrategy"),
    }
    return {ANNOTATION_UPGRADE_STRATEGY: json.dumps(record, separators=(",", ":"), sort_keys=True)}


async def _hold_settings(stage: UpgradeRun, before: Object) -> None:
    """Change the settings again that this version has given back, as those managers did only at the end."""
    plan = await stage.plan()
    status = objects.status(plan)
    if status.get("currentPhase") not in {"NodeUpgraded", "CleaningUp", "CleanedUp"}:
        return
    for override in (INTERVAL, DESCHEDULER):
        value: Any = "1800" if override is INTERVAL else False
        for name in reversed(override.field.split(".")):
            value = {name: value}
        await stage.client.patch(override.resource, override.name, MergePatch(value), namespace=override.namespace)
    original = (objects.spec(before).get("rkeConfig") or {}).get("upgradeStrategy")
    await stage.patch_cluster(upgradeStrategy=STRATEGY.read(_with(before, original))[1])


def _with(cluster: Object, strategy: Any) -> Object:
    return {**cluster, "spec": {**objects.spec(cluster), "rkeConfig": {"upgradeStrategy": strategy}}}


async def _status(stage: UpgradeRun, fields: dict[str, Any]) -> None:
    await stage.client.patch(UPGRADE_PLANS, stage.name, MergePatch({"status": fields}), subresource="status")
