"""Blockers: the objects that hold an upgrade up for longer than they should, in `status.blockers`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import Field

from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.timestamps import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

#: Entries in the status; the Stalled condition counts the others.
MAX_BLOCKERS = 50
#: Characters of a message.
MAX_TEXT = 400
#: Characters of a remedy.
MAX_REMEDY = 1000
#: Between the numbered steps of a remedy.
_STEP = re.compile(r" (?=\(\d\) )")
#: Bytes of all entries: long names, and texts in other scripts, would be more than 64 kB.
MAX_BYTES = 60_000


class BlockerReason(StrEnum):
    """The reasons of blockers. The Stalled condition shows the first one, in this order."""

    WRITE_REFUSED = "WriteRefused"
    CLEANUP_REFUSED = "CleanupRefused"
    KUBERNETES_VERSION_CHANGED = "KubernetesVersionChanged"
    STRATEGY_CONTESTED = "StrategyContested"
    NODE_UNAVAILABLE = "NodeUnavailable"
    MACHINE_AMBIGUOUS = "MachineAmbiguous"
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
    MIGRATION_STUCK = "MigrationStuck"
    VOLUME_DEGRADED = "VolumeDegraded"
    RANCHER_SILENT = "RancherSilent"
    LEDGER_UNSETTLED = "LedgerUnsettled"
    JOB_SLOW = "JobSlow"
    NODE_PAUSED = "NodePaused"

    @property
    def stalls(self) -> bool:
        """False for a user's choice, which is no reason for a warning."""
        return self is not BlockerReason.NODE_PAUSED


_ORDER = {reason: index for index, reason in enumerate(BlockerReason)}
_REASONS = {str(reason): reason for reason in BlockerReason}


class BlockerStatus(ApiModel, json_schema_extra={"required": ["kind", "name", "reason", "message", "remedy", "since"]}):
    """Something for which the upgrade waits longer than it should."""

    kind: str = Field(default="", description="Kind of the object.")
    namespace: str = Field(default="", description="Namespace of the object; absent for cluster-scoped objects.")
    name: str = Field(default="", description="Name of the object.")
    node: str = Field(default="", description="Node whose upgrade waits; absent if that is not one node.")
    reason: str = Field(default="", description=f"Machine-readable reason: {', '.join(BlockerReason)}.")
    message: str = Field(default="", description="Human-readable details, with the message of the object.")
    remedy: str = Field(default="", description="What to do, where possible a command.")
    since: str = Field(
        default="", description="Time at which the wait began, in UTC.", json_schema_extra={"format": "date-time"}
    )


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
    remedy: str
    #: The begin of the wait.
    since: datetime

    @property
    def identity(self) -> tuple[str, ...]:
        """The identity of a blocker: two observations with the same one are one blocker."""
        return (self.reason, self.kind, self.namespace, self.name, self.node)

    def entry(self) -> dict[str, Any]:
        """Return the raw entry of the status."""
        optional = {"namespace": self.namespace, "node": self.node}
        return {
            "kind": self.kind,
            **{key: value for key, value in optional.items() if value},
            "name": self.name,
            "reason": str(self.reason),
            "message": self.message[:MAX_TEXT],
            "remedy": _shortened(self.remedy),
            "since": format_time(self.since),
        }


def _shortened(remedy: str) -> str:
    """Return as many steps as fit: a command that is cut would be another one."""
    steps = _STEP.split(remedy)
    while len(steps) > 1 and len(" ".join(steps)) > MAX_REMEDY:
        steps.pop()
    return " ".join(steps)[:MAX_REMEDY]


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


def _read(entry: dict[str, Any]) -> Blocker | None:
    texts = {key: entry.get(key) or "" for key in ("kind", "namespace", "name", "node", "message", "remedy")}
    since = parse_time(entry.get("since"))
    reason = _REASONS.get(str(entry.get("reason")))
    if reason is None or since is None or not all(isinstance(text, str) for text in texts.values()):
        return None
    return Blocker(reason=reason, since=since, **texts)
