"""Finders of waits whose cause the pipeline knows: the blockers repeat the pipeline's description.

table.py lists them; pipeline/node_upgrade/waits.py describes the causes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.text import namespaced_name
from upgrade_manager.blockers.deadlines import at_once, check, deployed, from_start, missing_node, planner, settled
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.known_wait import (
    AmbiguousMachineWait,
    ChangedClusterWait,
    ChartJobWait,
    CheckedNodeWait,
    CheckedServiceWait,
    ContestedStrategyWait,
    CordonedNodeWait,
    DeployedChartWait,
    ForeignHookWait,
    HoldingAddonWait,
    HoldingClusterWait,
    HoldingMachineWait,
    HoldingUpgradeWait,
    LeftoverHookWait,
    MissingImageWait,
    MissingNodeWait,
    PausedNodeWait,
    RefusedCordonWait,
    RemovedDeploymentWait,
    RemovedImageWait,
    RemovedJobWait,
    RemovedServiceWait,
    SuspendedJobWait,
    TargetNodeWait,
    UnavailableNodeWait,
    UncordonedNodeWait,
    UnpulledImageWait,
    UnreadReportWait,
    UnsettledVMWait,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.finder import Row
    from upgrade_manager.blockers.known_wait import KnownWait
    from upgrade_manager.blockers.object_view import View


def _find(_: View, wait: KnownWait, *, reason: BlockerReason) -> Iterator[Blocker]:
    kind = wait.kind.object_kind
    named = namespaced_name(wait.namespace, wait.name)
    yield Blocker(
        reason=reason,
        kind=kind,
        namespace=wait.namespace,
        name=wait.name,
        node=wait.node,
        message=f"{kind} {named}: {wait.detail}",
        remedies=wait.remedies,
        since=wait.since,
        cause=wait.cause,
    )


_MISSING = Finder(
    wait=MissingNodeWait,
    reasons=(BlockerReason.NODE_MISSING,),
    overdue=missing_node,
    find=partial(_find, reason=BlockerReason.NODE_MISSING),
)
_OTHERS = tuple(
    Finder(wait=kind, reasons=(reason,), overdue=overdue, find=partial(_find, reason=reason))
    for kind, reason, overdue in (
        (ChangedClusterWait, BlockerReason.KUBERNETES_VERSION_CHANGED, settled),
        (ContestedStrategyWait, BlockerReason.STRATEGY_CONTESTED, at_once),
        (AmbiguousMachineWait, BlockerReason.MACHINE_AMBIGUOUS, settled),
        (HoldingUpgradeWait, BlockerReason.HOLDER_ACTIVE, settled),
        (HoldingMachineWait, BlockerReason.HOLDER_ACTIVE, settled),
        (HoldingAddonWait, BlockerReason.HOLDER_ACTIVE, deployed),
        (HoldingClusterWait, BlockerReason.HOLDER_ACTIVE, planner),
        (UnavailableNodeWait, BlockerReason.NODE_UNAVAILABLE, settled),
        (UncordonedNodeWait, BlockerReason.NODE_UNCORDONED, settled),
        (TargetNodeWait, BlockerReason.NO_MIGRATION_TARGET, settled),
        (CordonedNodeWait, BlockerReason.NODE_NOT_BACK, from_start),
        (SuspendedJobWait, BlockerReason.JOB_SUSPENDED, from_start),
        (ChartJobWait, BlockerReason.JOB_SLOW, from_start),
        (RemovedJobWait, BlockerReason.JOB_SLOW, from_start),
        (RemovedDeploymentWait, BlockerReason.REPOSITORY_UNAVAILABLE, from_start),
        (RemovedServiceWait, BlockerReason.REPOSITORY_UNAVAILABLE, from_start),
        (RemovedImageWait, BlockerReason.IMPORT_STUCK, from_start),
        (MissingImageWait, BlockerReason.IMPORT_STUCK, from_start),
        (CheckedNodeWait, BlockerReason.NODE_UNAVAILABLE, check),
        (CheckedServiceWait, BlockerReason.NODE_UNAVAILABLE, check),
        (PausedNodeWait, BlockerReason.NODE_PAUSED, at_once),
        (ForeignHookWait, BlockerReason.HOOK_FOREIGN, at_once),
        (LeftoverHookWait, BlockerReason.LEFTOVER_HOOK, at_once),
        (RefusedCordonWait, BlockerReason.CORDON_REFUSED, at_once),
        (UnpulledImageWait, BlockerReason.IMAGE_MISSING, at_once),
        (UnreadReportWait, BlockerReason.CONTAINER_FAILING, from_start),
        (UnsettledVMWait, BlockerReason.LEDGER_UNSETTLED, from_start),
        (DeployedChartWait, BlockerReason.CHART_NOT_DEPLOYED, deployed),
    )
)
FINDERS: tuple[Row, ...] = (_MISSING, *_OTHERS)
