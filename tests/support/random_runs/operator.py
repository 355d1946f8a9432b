"""The operator of a random run, who follows the remedies that the contract leaves to a user.

Harvester keeps one node schedulable, and the manager never changes a cordon. A node that a failed plan has left
cordoned may thus be the one that another node needs for its VMs. The blocker names it, with the command.
random_run.py runs it beside all plans; every other blocker has to pass by itself.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import BlockerReason, read_blockers
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Terminal, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.client import Client

#: Virtual seconds between two readings, after which a blocker does not pass by itself.
_INTERVAL = 300.0
#: The reasons of the blockers whose remedy is a cordon, or its end.
FOLLOWED = {BlockerReason.CORDON_REFUSED, BlockerReason.NO_MIGRATION_TARGET, BlockerReason.NODE_UNCORDONED}
_COMMAND = re.compile(r"kubectl (?P<verb>cordon|uncordon) (?P<node>[a-z0-9-]+)")


async def follow_remedies(client: Client) -> None:
    """Run the command of each blocker that two readings in succession show."""
    seen: set[tuple[str, str]] = set()
    while True:
        await asyncio.sleep(_INTERVAL)
        # A webhook may refuse the cordon of the last schedulable node, or every change of a node, for a while.
        with suppress(Transient, Terminal):
            commands = set(_commands((await client.list(UPGRADE_PLANS)).items))
            for verb, node in sorted(commands & seen):
                with suppress(NotFound):
                    await client.patch(NODES, node, MergePatch({"spec": {"unschedulable": verb == "cordon" or None}}))
            seen = commands


def _commands(plans: list[objects.Object]) -> Iterator[tuple[str, str]]:
    for plan in plans:
        for blocker in read_blockers(objects.status(plan).get("blockers")):
            found = next(filter(None, (_COMMAND.search(one.command) for one in blocker.remedies)), None)
            if blocker.reason in FOLLOWED and found:
                yield found["verb"], found["node"]
