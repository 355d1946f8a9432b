"""What is wrong with the list of nodes to hold back: a misspelt name holds nobody back, and its user should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext

#: Names that a sentence holds; more would help nobody.
NAMED = 10


def misnamed(ctx: ReconcileContext, nodes: Store) -> str:
    """What to say of names that no managed node has, empty where there are none; a Warning event has said it, too."""
    unknown = sorted(name for name in ctx.plan.spec.node_upgrade_option.pause_nodes if nodes.get(name) is None)
    if not unknown:
        return ""
    plural = "s" if len(unknown) > 1 else ""
    text = f"pauseNodes lists unknown node{plural} {enumerated(unknown)}; ignored"
    ctx.events.warning(ctx.raw, "PauseNodesUnknown", text, about=",".join(unknown))
    return text


def enumerated(names: list[str]) -> str:
    """The names, as a sentence has them."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
