"""Rancher's machine-plan Secrets: which node each belongs to, and what it asks; from metadata alone."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import (
    ANNOTATION_POST_HOOK,
    ANNOTATION_PRE_HOOK,
    RKE_CONTROL_PLANE_ROLE,
    RKE_ETCD_ROLE,
    RKE_INIT_NODE,
    RKE_MACHINE_NAME,
    RKE_POST_DRAIN,
    RKE_PRE_DRAIN,
    RKE_WORKER_ROLE,
)
from upgrade_manager.nodes.model import Hook

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


#: The first role that a machine has decides.
_TIERS = {1: RKE_ETCD_ROLE, 2: RKE_CONTROL_PLANE_ROLE, 3: RKE_WORKER_ROLE}


def node_of(secret: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> str:
    """The node behind the Secret's Machine; empty where there is no Machine or it has no node yet."""
    machine = machines.get(machine_of(secret))
    return node_of_machine(machine) if machine else ""


def machine_of(secret: Mapping[str, Any]) -> str:
    """The name of the Secret's Machine; empty where it names none."""
    return str((secret["metadata"].get("labels") or {}).get(RKE_MACHINE_NAME, ""))


def node_of_machine(machine: Mapping[str, Any]) -> str:
    """The name of the Machine's node; empty while it has none."""
    return str(((machine.get("status") or {}).get("nodeRef") or {}).get("name", ""))


def tier_of(secret: Mapping[str, Any]) -> int | None:
    """Rancher's order: the first etcd node, the others, further control-plane nodes, workers; None for no role."""
    labels = secret["metadata"].get("labels") or {}
    roles = [tier for tier, role in _TIERS.items() if labels.get(role) == "true"]
    return 0 if roles[:1] == [1] and labels.get(RKE_INIT_NODE) == "true" else next(iter(roles), None)


def pre_drain(secret: Mapping[str, Any]) -> Hook:
    """Rancher's first question."""
    return _hook(secret, asked=RKE_PRE_DRAIN, answered=ANNOTATION_PRE_HOOK, member="preDrainHooks")


def post_drain(secret: Mapping[str, Any]) -> Hook:
    """Rancher's second question."""
    return _hook(secret, asked=RKE_POST_DRAIN, answered=ANNOTATION_POST_HOOK, member="postDrainHooks")


def answers_left(secret: Mapping[str, Any]) -> tuple[str, ...]:
    """Our annotations that are still there: before an upgrade they are an earlier one's, and would answer at once."""
    present = secret["metadata"].get("annotations") or {}
    return tuple(key for key in (ANNOTATION_PRE_HOOK, ANNOTATION_POST_HOOK) if key in present)


def all_asking(secrets: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the Secrets with a question that is put to us, whatever we have answered."""
    return sorted(
        secret["metadata"]["name"] for secret in secrets if pre_drain(secret).asked or post_drain(secret).asked
    )


def _hook(secret: Mapping[str, Any], *, asked: str, answered: str, member: str) -> Hook:
    annotations = secret["metadata"].get("annotations") or {}
    value = annotations.get(asked, "")
    if not _names_us(value, member, answered):
        value = ""
    return Hook(asked=value, answered=annotations.get(answered, ""))


@lru_cache(maxsize=64)
def _names_us(value: str, member: str, annotation: str) -> bool:
    """Whether the drain options in the question list our annotation; a question of someone else's upgrade does not."""
    try:
        options = json.loads(value)
        return any(hook.get("annotation") == annotation for hook in options.get(member) or [])
    except (ValueError, AttributeError, TypeError, RecursionError):
        return False
