"""What one more node costs in requests, while nodes are upgraded one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.node_states import NodeState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.bench.recorder import Exchange

_UPGRADED = f'"state":"{NodeState.POST_DRAINED.value}"'.encode()


def each_node(asked: Sequence[Exchange]) -> float:
    """Requests from the record of the first upgraded node to that of the last one, for each node after the first.

    So what is asked once in an upgrade, and what all nodes need at the same time, is left out.
    """
    told = [exchange.request.body.count(_UPGRADED) if exchange.writes_status else 0 for exchange in asked]
    records = [place for place, count in enumerate(told) if count]
    return (records[-1] - records[0]) / (sum(told) - told[records[0]])
