"""Harvester's own upgrade is not running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts import holders
from webhook.check import Check, Finding
from webhook.listings import UPGRADES

if TYPE_CHECKING:
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    found = map(holders.upgrade, await subject.cluster.list(UPGRADES))
    return [Finding(problem=str(one), remedies=one.ways_out) for one in found if one is not None]


CHECK = Check(name="built-in upgrade", field="spec", find=_find)
