"""What the manager asks of Rancher: the provisioning cluster's upgrade strategy, with our hooks in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, ANNOTATION_PRE_HOOK

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A string in Rancher's API. One at a time, whatever the role.
ONE = "1"


def upgrade_strategy(rke: Mapping[str, Any]) -> dict[str, Any]:
    """One node at a time, drained, with a question to us before the drain and one after it.

    What else others have in the strategy of `rke`, the cluster's RKE configuration, stays, and their hooks beside ours.
    """
    old = rke.get("upgradeStrategy") or {}
    return {
        **old,
        "controlPlaneConcurrency": ONE,
        "workerConcurrency": ONE,
        "controlPlaneDrainOptions": _drain_options(old.get("controlPlaneDrainOptions") or {}),
        "workerDrainOptions": _drain_options(old.get("workerDrainOptions") or {}),
    }


def without_our_hooks(strategy: Any) -> dict[str, Any] | None:
    """Return a strategy as it was before an upgrade that did not put it back; None where it is none."""
    if not isinstance(strategy, dict):
        return None
    return {name: _cleaned(value) if isinstance(value, dict) else value for name, value in strategy.items()}


def asks_us(cluster: Mapping[str, Any]) -> bool:
    """Whether the cluster's strategy carries our hook: proof that our patch has been made."""
    strategy = rke_config(cluster).get("upgradeStrategy") or {}
    hooks = (strategy.get("controlPlaneDrainOptions") or {}).get("preDrainHooks") or []
    return any(hook.get("annotation") == ANNOTATION_PRE_HOOK for hook in hooks)


def generation(cluster: Mapping[str, Any]) -> int:
    """Rancher's provisionGeneration; absent counts as 0."""
    return int(rke_config(cluster).get("provisionGeneration") or 0)


def rke_config(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the RKE part of the cluster's spec, which may be null."""
    return (cluster.get("spec") or {}).get("rkeConfig") or {}


def _drain_options(old: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **old,
        "enabled": True,
        "force": True,
        "ignoreDaemonSets": True,
        "deleteEmptyDirData": True,
        "preDrainHooks": _with(old.get("preDrainHooks") or [], ANNOTATION_PRE_HOOK),
        "postDrainHooks": _with(old.get("postDrainHooks") or [], ANNOTATION_POST_HOOK),
    }


def _with(hooks: list[dict[str, Any]], annotation: str) -> list[dict[str, Any]]:
    return [*_less(hooks, annotation), {"annotation": annotation}]


def _cleaned(options: dict[str, Any]) -> dict[str, Any]:
    ours = {"preDrainHooks": ANNOTATION_PRE_HOOK, "postDrainHooks": ANNOTATION_POST_HOOK}
    lists = {name: _less(options[name], key) for name, key in ours.items() if options.get(name)}
    return {name: lists.get(name, value) for name, value in options.items() if lists.get(name, True)}


def _less(hooks: list[dict[str, Any]], annotation: str) -> list[dict[str, Any]]:
    return [hook for hook in hooks if hook.get("annotation") != annotation]
