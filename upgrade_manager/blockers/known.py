"""Waits whose cause the pipeline knows: they are reported as it describes them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.blockers.finder import START, Finder
from upgrade_manager.blockers.wait import (
    CordonedNodeWait,
    ForeignHookWait,
    LeftoverHookWait,
    LostHookWait,
    MissingNodeWait,
    PausedNodeWait,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.blockers.wait import KnownWait

#: Rancher may drain a node that runs the release's Kubernetes already within that time.
HOOK = timedelta(minutes=10)
_AT_ONCE = timedelta(0)


def _overdue(_: KnownWait, *, limit: timedelta) -> timedelta:
    return limit


def _find(_: View, wait: KnownWait, *, reason: BlockerReason) -> Iterator[Blocker]:
    kind = wait.kind.object_kind
    named = f"{wait.namespace}/{wait.name}" if wait.namespace else wait.name
    yield Blocker(
        reason=reason,
        kind=kind,
        namespace=wait.namespace,
        name=wait.name,
        node=wait.node,
        message=f"{kind} {named}: {wait.detail}",
        remedy=wait.remedy,
        since=wait.since,
    )


FINDERS = tuple(
    Finder(wait=kind, reasons=(reason,), overdue=partial(_overdue, limit=limit), find=partial(_find, reason=reason))
    for kind, reason, limit in (
        (MissingNodeWait, BlockerReason.NODE_MISSING, _AT_ONCE),
        (CordonedNodeWait, BlockerReason.NODE_NOT_BACK, START),
        (PausedNodeWait, BlockerReason.NODE_PAUSED, _AT_ONCE),
        (ForeignHookWait, BlockerReason.HOOK_FOREIGN, _AT_ONCE),
        (LeftoverHookWait, BlockerReason.LEFTOVER_HOOK, _AT_ONCE),
        (LostHookWait, BlockerReason.HOOK_LOST, HOOK),
    )
)
