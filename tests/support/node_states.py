"""Records the node states of a plan, in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.faults.call import Call
    from upgrade_manager.kube.transport import Response

_OK = 200


class StateRecorder:
    """A hook of the middleware that reads writes of the plan's status."""

    def __init__(self) -> None:
        self.states: dict[str, list[str]] = {}

    async def before(self, number: int, call: Call) -> None:
        """Do nothing before the request."""

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Record new states."""
        _ = number
        if not call.resource.startswith("upgradeplans") or call.subresource != "status" or response.status != _OK:
            return
        statuses = (json.loads(response.body).get("status") or {}).get("nodeUpgradeStatuses") or {}
        for node, entry in statuses.items():
            known = self.states.setdefault(node, [])
            if known[-1:] != [entry["state"]]:
                known.append(entry["state"])
