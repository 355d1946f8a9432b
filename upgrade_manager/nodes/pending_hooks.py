"""Post-drain hooks that are still set when every node is done; each of them delays the end of the phase.

Rancher removes a hook after it was acknowledged and the node is uncordoned. A hook that is not acknowledged stays until
a user removes it, so the message names it.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, FLEET_LOCAL, MANAGED_LABEL, RKE_POST_DRAIN
from upgrade_manager.kube import objects
from upgrade_manager.nodes import machine_plan

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.node_view import Observed


def remaining_hooks(observed: Observed, *, multi_node: bool, limit: int) -> str:
    """Describe up to `limit` post-drain hooks that are set, ordered by node: node, Secret, and the action that is due.

    The manager acknowledges hooks of managed nodes in a `multi_node` upgrade. A Secret without a Machine or a node is
    skipped: Rancher does not process it.
    """
    machines = {objects.name(machine): machine for machine in observed.machines.list()}
    managed = set(observed.nodes.derive(objects.name))
    hooked = [secret for secret in observed.secrets.list() if RKE_POST_DRAIN in objects.annotations_of(secret)]
    by_node = sorted(((machine_plan.node_of(secret, machines), secret) for secret in hooked), key=itemgetter(0))
    found = [
        f"{node}: {RKE_POST_DRAIN} of Secret {FLEET_LOCAL}/{objects.name(secret)} "
        f"{_state(secret, acknowledges=multi_node and node in managed, multi_node=multi_node)}"
        for node, secret in by_node
        if node
    ]
    more = [f"{len(found) - limit} more"] if len(found) > limit else []
    return "; ".join([*found[:limit], *more])


def _state(secret: Object, *, acknowledges: bool, multi_node: bool) -> str:
    hook = machine_plan.post_drain_hook(secret)
    remove = f"remove it: kubectl annotate secret -n {FLEET_LOCAL} {objects.name(secret)} {RKE_POST_DRAIN}-"
    if not hook.requested:
        return f"is the hook of another controller, which must acknowledge it (not {ANNOTATION_POST_HOOK})"
    if not hook.pending or acknowledges:
        # Each reconcile acknowledges the hooks of nodes that are done before this check.
        return "is acknowledged; waiting for Rancher to uncordon the node"
    if not multi_node:
        return f"is pending since an earlier upgrade ({remove})"
    return f"is pending, but the node does not exist or lacks the label {MANAGED_LABEL}=true ({remove})"
