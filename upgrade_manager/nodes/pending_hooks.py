"""Rancher's second questions that are still there once every node is done: each of them holds up the end.

Rancher takes a question away when it has heard the answer and uncordoned the node. One that nobody answers stays until
somebody removes it, so it is told which one that is, and why.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, FLEET_LOCAL, MANAGED_LABEL, RKE_POST_DRAIN
from upgrade_manager.nodes import machine_plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


def still_there(
    secrets: Iterable[Mapping[str, Any]],
    machines: Mapping[str, Mapping[str, Any]],
    *,
    managed: Collection[str],
    is_driven: bool,
) -> list[str]:
    """Per node and Secret what is awaited, in words and in the nodes' order.

    `managed` are the nodes whose questions we answer, in an upgrade that Rancher drives (`is_driven`). A Secret without
    a Machine or a node is passed over: Rancher will never come back to it.
    """
    asking = [secret for secret in secrets if RKE_POST_DRAIN in (secret["metadata"].get("annotations") or {})]
    by_node = sorted(((machine_plan.node_of(secret, machines), secret) for secret in asking), key=itemgetter(0))
    return [
        f"node {node}: Secret {FLEET_LOCAL}/{secret['metadata']['name']} with {RKE_POST_DRAIN}"
        f"{_awaited(secret, is_managed=node in managed, is_driven=is_driven)}"
        for node, secret in by_node
        if node
    ]


def _awaited(secret: Mapping[str, Any], *, is_managed: bool, is_driven: bool) -> str:
    """The state of the question, and who has to do what about it."""
    hook = machine_plan.post_drain(secret)
    if not hook.asked:
        return f" that does not ask for {ANNOTATION_POST_HOOK}: whoever set it has to answer or to remove it"
    if not hook.open or (is_driven and is_managed):
        # All that is left to do for a node that is done is the answer, and every look gives it before it comes here.
        return ", answered: Rancher to remove it when it has uncordoned the node"
    if not is_driven:
        return ", left by an earlier upgrade and not answered: to be removed by hand"
    return f", not answered because the node is gone or lacks {MANAGED_LABEL}=true: to be removed by hand"
