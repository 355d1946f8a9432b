"""Blockers: the objects that hold an upgrade up for longer than they should, in `status.blockers`.

blocker_status.py has the model of an entry, for which pydantic is imported.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.remedy import Remedy, fitting, read_remedies, remedy_text
from upgrade_manager.api.timestamps import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

#: Entries in the status; the Stalled condition counts the others.
MAX_BLOCKERS = 50
#: Other objects with the same cause that an entry names.
MAX_OTHERS = 20
#: Characters of a message.
MAX_TEXT = 400
#: Bytes of all entries: long names, and texts in other scripts, would be more than 96 kB.
MAX_BYTES = 92_000


class BlockerReason(StrEnum):
    """The reasons of blockers. The Stalled condition shows the first one, in this order."""

    WRITE_REFUSED = "WriteRefused"
    CLEANUP_REFUSED = "CleanupRefused"
    KUBERNETES_VERSION_CHANGED = "KubernetesVersionChanged"
    STRATEGY_CONTESTED = "StrategyContested"
    NODE_UNAVAILABLE = "NodeUnavailable"
    MACHINE_AMBIGUOUS = "MachineAmbiguous"
    HOLDER_ACTIVE = "HolderActive"
    NO_MIGRATION_TARGET = "NoMigrationTarget"
    NODE_UNCORDONED = "NodeUncordoned"
    CORDON_REFUSED = "CordonRefused"
    HOOK_LOST = "HookLost"
    HOOK_FOREIGN = "HookForeign"
    LEFTOVER_HOOK = "LeftoverHook"
    NODE_MISSING = "NodeMissing"
    NODE_NOT_BACK = "NodeNotBack"
    POD_UNSCHEDULABLE = "PodUnschedulable"
    IMAGE_MISSING = "ImageMissing"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_FAILING = "ContainerFailing"
    POD_PENDING = "PodPending"
    JOB_SUSPENDED = "JobSuspended"
    JOB_HAS_NO_POD = "JobHasNoPod"
    IMPORT_STUCK = "ImportStuck"
    UPGRADE_CONTROLLER_SILENT = "UpgradeControllerSilent"
    REPOSITORY_UNAVAILABLE = "RepositoryUnavailable"
    CHART_NOT_DEPLOYED = "ChartNotDeployed"
    DRAIN_FAILING = "DrainFailing"
    EVICTION_FORBIDDEN = "EvictionForbidden"
    MIGRATION_STUCK = "MigrationStuck"
    VOLUME_DEGRADED = "VolumeDegraded"
    RANCHER_SILENT = "RancherSilent"
    LEDGER_UNSETTLED = "LedgerUnsettled"
    JOB_SLOW = "JobSlow"
    NODE_PAUSED = "NodePaused"

    @property
    def stalls(self) -> bool:
        """False for a user's choice, which is not a reason for a warning."""
        return self is not BlockerReason.NODE_PAUSED


_ORDER = {reason: index for index, reason in enumerate(BlockerReason)}
_REASONS = {str(reason): reason for reason in BlockerReason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One blocker."""

    reason: BlockerReason
    kind: str
    name: str
    #: Empty for cluster-scoped objects.
    namespace: str = ""
    #: The node whose upgrade waits; empty if that is not one node.
    node: str = ""
    message: str
    remedies: tuple[Remedy, ...]
    #: The begin of the wait.
    since: datetime
    #: A predicate; blockers with the same reason, kind, namespace and cause are one (blockers/shared_cause.py). Empty
    #: for a blocker that shares none.
    cause: str = ""
    #: The names of the other objects with the same cause.
    others: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        """The remedies in one line."""
        return remedy_text(self.remedies)

    @property
    def identity(self) -> tuple[str, ...]:
        """The identity of a blocker: two observations with the same one are one blocker."""
        return (self.reason, self.kind, self.namespace, self.name, self.node)

    def entry(self) -> dict[str, Any]:
        """Return the raw entry of the status."""
        optional = {"namespace": self.namespace, "node": self.node}
        remedies = fitting(self.remedies)
        return {
            "kind": self.kind,
            **{key: value for key, value in optional.items() if value},
            "name": self.name,
            **({"others": list(self.others)} if self.others else {}),
            "reason": str(self.reason),
            "message": self.message[:MAX_TEXT],
            "remedy": remedy_text(remedies),
            "remedies": [one.entry() for one in remedies],
            "since": format_time(self.since),
        }


def entries_of(blockers: Sequence[Blocker]) -> list[dict[str, Any]]:
    """Return the raw entries of the first blockers, as many as the status may hold."""
    found: list[dict[str, Any]] = []
    size = 0
    for blocker in blockers[:MAX_BLOCKERS]:
        entry = blocker.entry()
        size += len(json.dumps(entry, ensure_ascii=False).encode(errors="replace"))
        if size > MAX_BYTES:
            break
        found.append(entry)
    return found


def read_blockers(raw: object) -> list[Blocker]:
    """Parse `status.blockers`; entries of other versions of the manager are left out."""
    entries = raw if isinstance(raw, list) else []
    return [found for entry in entries if isinstance(entry, dict) and (found := _read(entry)) is not None]


def merge_blockers(known: Iterable[Blocker], found: Iterable[Blocker]) -> list[Blocker]:
    """Return the found blockers in order, each once; one that is known keeps its time."""
    times = {blocker.identity: blocker.since for blocker in known}
    unique = {one.identity: replace(one, since=times.get(one.identity, one.since)) for one in found}
    return sorted(unique.values(), key=lambda one: (_ORDER[one.reason], one.since, one.identity))


def continues(old: Blocker, new: Blocker) -> bool:
    """Return True if a blocker of one cause goes on with some of its objects, perhaps under another one's name."""
    if old.identity == new.identity:
        return True
    is_same = (old.reason, old.kind, old.namespace) == (new.reason, new.kind, new.namespace)
    is_shared = bool(old.others or new.others)
    return is_same and is_shared and not {old.name, *old.others}.isdisjoint({new.name, *new.others})


def _read(entry: dict[str, Any]) -> Blocker | None:
    texts = {key: entry.get(key) or "" for key in ("kind", "namespace", "name", "node", "message", "remedy")}
    since = parse_time(entry.get("since"))
    reason = _REASONS.get(str(entry.get("reason")))
    if reason is None or since is None or not all(isinstance(text, str) for text in texts.values()):
        return None
    remedies = read_remedies(entry.get("remedies"), text=texts.pop("remedy"))
    raw = entry.get("others")
    others = tuple(one for one in raw if isinstance(one, str)) if isinstance(raw, list) else ()
    return Blocker(reason=reason, since=since, remedies=remedies, others=others, **texts)
