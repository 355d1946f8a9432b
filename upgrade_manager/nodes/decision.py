from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.nodes.effects import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Where the node stands now, and what is to be done about it."""

    #: None while Rancher has not come to the node.
    state: NodeState | None
    #: What the node waits for, for the plan's message; empty where it needs nothing.
    waits_for: str = ""
    effects: tuple[Effect, ...] = ()
    #: What is to be said about the node itself; empty while all is well.
    note: str = ""
    #: Why the node has failed; empty where it has not.
    failure: str = ""
