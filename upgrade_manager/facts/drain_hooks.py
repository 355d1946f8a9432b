"""Drain hooks in Rancher's upgradeStrategy and on machine-plan Secrets, and the commands that end a wait for them.

The waits of the node upgrade (pipeline/node_upgrade/waits.py), the hooks that delay its end (nodes/pending_hooks.py),
the single-node upgrade (toolkit/charts/rancher_cluster.py) and the end of a plan (pipeline/ending/held_nodes.py) name
these commands. node_obstacles.py has the reasons of the waits.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import (
    ANNOTATION_POST_HOOK,
    ANNOTATION_PRE_HOOK,
    FLEET_LOCAL,
    PROVISIONING_CLUSTER,
    RKE_POST_DRAIN,
    RKE_PRE_DRAIN,
)
from upgrade_manager.api.remedy import Change, Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

#: The lists of hooks in drain options, each with the manager's hook.
HOOKS = {"preDrainHooks": ANNOTATION_PRE_HOOK, "postDrainHooks": ANNOTATION_POST_HOOK}
DRAIN_OPTIONS = ("controlPlaneDrainOptions", "workerDrainOptions")
#: The acknowledging annotation of each annotation with which Rancher waits.
_ACKNOWLEDGEMENTS = {RKE_PRE_DRAIN: ANNOTATION_PRE_HOOK, RKE_POST_DRAIN: ANNOTATION_POST_HOOK}
_CLUSTER = f"-n {FLEET_LOCAL} {PROVISIONING_CLUSTERS.name} {PROVISIONING_CLUSTER}"


def options_of(strategy: Any) -> list[dict[str, Any]]:
    """Return the drain options of the strategy, in the order of DRAIN_OPTIONS."""
    found = strategy if isinstance(strategy, dict) else {}
    return [found.get(role) or {} for role in DRAIN_OPTIONS]


def without_hooks_of(strategy: Any, annotations: Collection[str]) -> dict[str, Any]:
    """Return the body of a merge patch that removes the hooks of these annotations, and keeps all others."""
    return {
        role: lists
        for role, options in zip(DRAIN_OPTIONS, options_of(strategy), strict=True)
        if (lists := _shorter_lists(options, annotations))
    }


def contains_hook(options: Mapping[str, Any], member: str) -> bool:
    """Return True if that list of the drain options contains the manager's hook."""
    return any(hook.get("annotation") == HOOKS[member] for hook in options.get(member) or [])


def has_hooks(strategy: Any) -> bool:
    """Return True if any drain options contain a hook of the manager."""
    return any(contains_hook(options, member) for options in options_of(strategy) for member in HOOKS)


def remove_command(strategy: Any, annotations: Collection[str]) -> str:
    """Return the command that removes the hooks of these annotations from Rancher's cluster.

    A strategy that does not contain the hooks, or is unknown, is edited by hand.
    """
    changed = without_hooks_of(strategy, annotations)
    return _patch(changed) if changed else f"kubectl edit {_CLUSTER}"


def _add_command(strategy: Any, annotations: Collection[str]) -> str:
    """Return the command that gives these hooks back; empty for a strategy that does not contain them.

    It writes whole lists without the manager's hooks, because the upgrade may have removed a list with its last hook.
    """
    lists = {
        role: {member: _without(strategy[role][member], {HOOKS[member]}) for member in changed}
        for role, changed in without_hooks_of(strategy, annotations).items()
    }
    return _patch(lists) if lists else ""


def _patch(strategy: Mapping[str, Any]) -> str:
    body = {"spec": {"rkeConfig": {"upgradeStrategy": strategy}}}
    return f"kubectl patch {_CLUSTER} --type=merge -p {shlex.quote(json.dumps(body, separators=(',', ':')))}"


def _hooks_of(strategy: Any, annotations: Collection[str]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the strategy's hooks of these annotations, each with its drain options and list."""
    return [
        (role, member, hook)
        for role, options in zip(DRAIN_OPTIONS, options_of(strategy), strict=True)
        for member in HOOKS
        for hook in options.get(member) or []
        if hook.get("annotation") in annotations
    ]


def _change(annotation: str, strategy: Any) -> Change:
    """Return the change of the strategy that removes the hook of this annotation."""
    return Change(
        kind=PROVISIONING_CLUSTERS.kind,
        namespace=FLEET_LOCAL,
        name=PROVISIONING_CLUSTER,
        field=f"spec.rkeConfig.upgradeStrategy[{annotation}]",
        original=_hooks_of(strategy, {annotation}),
    )


def foreign_ways_out(strategy: Any, hooks: Sequence[str], *, drained: str = "") -> tuple[Remedy, ...]:
    """Return the remedies for other controllers' hooks; node_obstacles.foreign_hooks has the reason.

    `drained` is the Secret of a node whose post-drain hook waits: Rancher keeps the drain options of such a node.
    """
    return (
        Remedy(f"Start the controller that sets annotation {name_list(hooks)} of the Secret"),
        Remedy(
            "Or remove its hook from the drain options",
            command=remove_command(strategy, frozenset(hooks)),
            undo=_add_command(strategy, frozenset(hooks)),
            changes=tuple(_change(one, strategy) for one in hooks if _hooks_of(strategy, {one})),
        ),
        *(
            Remedy("And acknowledge it for this node, which is drained", command=_acknowledge(drained, one))
            for one in hooks
            if drained
        ),
    )


def _acknowledge(secret: str, hook: str) -> str:
    place = f"secret -n {FLEET_LOCAL} {secret}"
    path = RKE_POST_DRAIN.replace(".", r"\.")
    value = f"kubectl get {place} -o jsonpath='{{.metadata.annotations.{path}}}'"
    return f'kubectl annotate {place} {shlex.quote(hook)}="$({value})"'


def drain_again(generation: int) -> Remedy:
    """Return the remedy for nodes that Rancher has not drained, or whose drain Rancher has forgotten.

    `generation` is the Cluster's provisionGeneration; node_obstacles.py has the reasons.
    """
    body = json.dumps({"spec": {"rkeConfig": {"provisionGeneration": generation + 1}}}, separators=(",", ":"))
    command = f"kubectl patch {_CLUSTER} --type=merge -p {shlex.quote(body)}"
    return Remedy("Let Rancher drain all nodes again, also the upgraded ones", command=command)


def leftover_hook(secret: str, *keys: str) -> str:
    """Return the command that acknowledges the hooks of these keys, or both hooks, with which Rancher continues.

    Rancher sets a hook again that a user removes, until the hook is acknowledged with the drain options as value.
    """
    options = "{.metadata.annotations.rke\\.cattle\\.io/drain-options}"
    kubectl = f"kubectl -n {FLEET_LOCAL}"
    acknowledged = " ".join(f'{_ACKNOWLEDGEMENTS[key]}="$VALUE"' for key in keys or _ACKNOWLEDGEMENTS)
    return (
        f"VALUE=$({kubectl} get secret {secret} -o jsonpath='{options}')"
        f" && {kubectl} annotate --overwrite secret {secret} {acknowledged}"
    )


def _shorter_lists(options: Mapping[str, Any], annotations: Collection[str]) -> dict[str, Any]:
    lists = {member: options.get(member) or [] for member in HOOKS}
    kept = {member: _without(hooks, annotations) for member, hooks in lists.items()}
    return {member: hooks for member, hooks in kept.items() if hooks != lists[member]}


def _without(hooks: Sequence[dict[str, Any]], annotations: Collection[str]) -> list[dict[str, Any]]:
    return [one for one in hooks if one.get("annotation") not in annotations]
