"""The changes of all hosts that the manager makes around its Jobs, as a table.

phases/host_plans.py makes and undoes them by Plans of the system-upgrade-controller; ending/ names what is left.

    1. an entry in status.ledger says that the change has begun
    2. a Plan makes the change on every managed node, before the step that it protects
    3. another Plan undoes it on every managed node; the entry is removed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import Component
from upgrade_manager.api.ledger import LedgerKind, entry_id, new_entry
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.suc_nodes import labelled_nodes
from upgrade_manager.kube import objects
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.selections import MANAGED_NODES
from upgrade_manager.release.migrations import hosts
from upgrade_manager.resources.host_scripts import (
    AGENT,
    AGENT_FOLDER,
    HOLD_AGENT,
    RELEASE_AGENT,
    SKIP_FILE,
    SKIP_MULTUS,
    UNSKIP_MULTUS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.release.migrations.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChange:
    """A change of every host, and the way back."""

    #: Its row in the listing of `upgrade-manager steps`.
    row: Row
    #: The kind of its entry in the ledger, and the object of the entry.
    kind: LedgerKind
    object: str
    #: The components of both Plans.
    apply: Component
    undo: Component
    #: The script of each Plan, and its work in messages.
    scripts: Mapping[Component, str]
    works: Mapping[Component, str]
    #: The most nodes at once; None for all.
    concurrency: int | None
    #: Follows the names of the nodes that keep the change at the end: what it means there.
    left: str
    #: The command that undoes it on a node.
    command: str

    @property
    def id(self) -> str:
        """The id of the change's entry."""
        return entry_id(self.kind, self.object.rpartition("/")[2].rpartition(" ")[2])

    def entry(self, ctx: ReconcileContext) -> Entry | None:
        """Return the entry of this plan, or of an earlier one; None unless the change has begun."""
        return next((entry for entry in ledger.entries(ctx, self.kind) if entry["id"] == self.id), None)

    def new_entry(self, ctx: ReconcileContext) -> Entry:
        """Return the entry of a change that is about to begin."""
        return new_entry(self.kind, self.id.partition(".")[2], object_=self.object, since=ledger.now(ctx))


HOLD = HostChange(
    row=hosts.AGENT_HOLD,
    kind=LedgerKind.HOLD,
    object=f"Service {AGENT}",
    apply=Component.AGENT_HOLD,
    undo=Component.AGENT_RELEASE,
    scripts={Component.AGENT_HOLD: HOLD_AGENT, Component.AGENT_RELEASE: RELEASE_AGENT},
    works={
        Component.AGENT_HOLD: "hold of the system agents",
        Component.AGENT_RELEASE: "release of the system agents",
    },
    concurrency=10,
    left=f"may keep the hold on {AGENT}, with which Rancher does not restart RKE2 there. A reboot or the next "
    "UpgradePlan removes it; where none follows, on each",
    command=f"rm -r {AGENT_FOLDER} && systemctl daemon-reload && systemctl restart {AGENT}",
)
SKIP = HostChange(
    row=hosts.SKIP_MULTUS,
    kind=LedgerKind.FILE,
    object=f"File {SKIP_FILE}",
    apply=Component.SKIP_ON,
    undo=Component.SKIP_OFF,
    scripts={Component.SKIP_ON: SKIP_MULTUS, Component.SKIP_OFF: UNSKIP_MULTUS},
    works={
        Component.SKIP_ON: "hold of RKE2's chart rke2-multus",
        Component.SKIP_OFF: "release of RKE2's chart rke2-multus",
    },
    concurrency=None,
    left=f"may keep the file {SKIP_FILE}, with which RKE2 does not update its chart rke2-multus. The next attempt or "
    "UpgradePlan removes it; where none follows, on each",
    command=f"rm -f {SKIP_FILE}",
)
#: In the order in which they are undone.
CHANGES = (SKIP, HOLD)


async def left(ctx: ReconcileContext) -> list[Remedy]:
    """Name the nodes of each change that is not undone, with the commands."""
    changes = [change for change in CHANGES if change.entry(ctx) is not None]
    if not changes:
        return []
    nodes = (await ctx.watch(MANAGED_NODES)).list()
    steps = []
    for change in changes:
        undone = labelled_nodes(ctx.owner.name_of(change.undo), nodes)
        names = [name for name in map(objects.name, nodes) if name not in undone]
        where = f"Node{'s' if len(names) > 1 else ''} {name_list(names)}" if names else "Nodes"
        steps.append(Remedy(f"{where} {change.left}", command=change.command))
    return steps
