"""Every Machine of Cluster API is Running.

facts/removal.py explains a Machine that is being deleted, also to the nodes of an upgrade (nodes/node_view.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts import holders
from webhook.check import Check, Finding
from webhook.listings import MACHINES

if TYPE_CHECKING:
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    found = map(holders.machine, await subject.cluster.list(MACHINES))
    return [Finding(problem=str(one), remedies=one.ways_out) for one in found if one is not None]


CHECK = Check(name="machines", field="spec", find=_find)
