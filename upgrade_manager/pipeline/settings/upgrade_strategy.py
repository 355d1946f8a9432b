"""Rancher's upgradeStrategy with and without the manager's drain hooks.

rancher.py and overrides.py write it; ending/held_nodes.py finds the hooks that stay.

The hooks hold every node until the manager acknowledges them. Without them Rancher upgrades all nodes at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.facts.drain_hooks import DRAIN_OPTIONS, HOOKS, contains_hook, options_of

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The concurrency of one node, as a string in Rancher's API.
ONE = "1"
#: The gracePeriod with which Pods get their own terminationGracePeriodSeconds; Rancher's default of 0 kills them.
_OWN_GRACE_PERIOD = -1


def with_hooks(strategy: Any) -> dict[str, Any]:
    """Return the strategy changed to drain one node at a time, with the manager's hooks."""
    old = strategy if isinstance(strategy, dict) else {}
    return {
        **old,
        "controlPlaneConcurrency": ONE,
        "workerConcurrency": ONE,
        **{role: _drain_options(old.get(role) or {}) for role in DRAIN_OPTIONS},
    }


def without_hooks(strategy: Any) -> dict[str, Any] | None:
    """Return the strategy without the manager's hooks; None if it is not an object."""
    if not isinstance(strategy, dict):
        return None
    return {name: _cleaned(value) if isinstance(value, dict) else value for name, value in strategy.items()}


def holds_nodes(strategy: Any) -> bool:
    """Return True if control-plane and worker nodes are drained, and wait for both drain hooks of the manager."""
    return all(
        options.get("enabled") is True and all(contains_hook(options, member) for member in HOOKS)
        for options in options_of(strategy)
    )


def merge(original: Any, applied: Any, now: Any) -> Any:
    """Return the strategy to give back: originals in place of applied values, and values that other clients have set.

    The manager's hooks never stay, as Rancher would wait for them after the end of the upgrade.
    """
    return without_hooks(_three_way(original, applied, now)) if now is not None else None


def _three_way(original: Any, applied: Any, now: Any) -> Any:
    if now == applied:
        return original
    if not isinstance(now, dict) or not isinstance(applied, dict):
        return now
    base = original if isinstance(original, dict) else {}
    names = [*now, *(name for name in base if name not in now)]
    merged = {name: _three_way(base.get(name), applied.get(name), now.get(name)) for name in names}
    found = {name: value for name, value in merged.items() if value is not None}
    return found if found or isinstance(original, dict) else None


def _drain_options(old: Mapping[str, Any]) -> dict[str, Any]:
    enabled = dict.fromkeys(("enabled", "force", "ignoreDaemonSets", "deleteEmptyDirData"), True)
    hooks = {
        name: [*_without(old.get(name) or [], annotation), {"annotation": annotation}]
        for name, annotation in HOOKS.items()
    }
    return {**old, **enabled, "gracePeriod": _OWN_GRACE_PERIOD, **hooks}


def _cleaned(options: dict[str, Any]) -> dict[str, Any]:
    lists = {name: _without(options[name], key) for name, key in HOOKS.items() if options.get(name)}
    return {name: lists.get(name, value) for name, value in options.items() if lists.get(name, True)}


def _without(hooks: list[dict[str, Any]], annotation: str) -> list[dict[str, Any]]:
    return [hook for hook in hooks if hook.get("annotation") != annotation]
