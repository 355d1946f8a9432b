"""An upgrade that is to pause after some nodes has so many; admission.py checks that of a changed plan, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.check import Check, Finding
from webhook.listings import NODES

if TYPE_CHECKING:
    from webhook.check import Subject

FIELD = "spec.nodeUpgradeOption.pauseAfter"


async def _find(subject: Subject) -> list[Finding]:
    after = subject.spec.node_upgrade_option.pause_after
    nodes = len(await subject.cluster.list(NODES)) if after else 0
    if not after or after <= nodes:
        return []
    problem = f"The cluster has {nodes} nodes, so that the upgrade never pauses after {after}"
    return [Finding(problem=f"{problem}. Use at most {nodes}, or remove it")]


CHECK = Check(name="pause after", field=FIELD, find=_find)
