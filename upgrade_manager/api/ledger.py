"""The ledger of a plan: what the upgrade has changed elsewhere, stopped or owes, in `status.ledger`.

The reconciler alone writes it, each entry before the change. pipeline/settings/overrides.py records settings, and
giving_back.py settles them; pipeline/ledger.py copies what the Jobs record. `in_progress.py` decides which entries hold
up the next plan. All functions read a raw status, for commands without pydantic; status.py has the model of an entry.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.names import MAX_NAME
from upgrade_manager.api.phases import FAILED, PhaseName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: A raw entry of the ledger.
Entry: TypeAlias = dict[str, Any]
#: Field of Rancher's cluster that a plan may leave to the next one.
STRATEGY_FIELD = "spec.rkeConfig.upgradeStrategy"
_CLUSTER = f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER}"
_DIGEST = 16
#: For entries of a plan that records no time.
_UNKNOWN_TIME = "1970-01-01T00:00:00Z"


class LedgerKind(StrEnum):
    """The subjects of entries; each is settled in its own way."""

    #: A field of another object, whose original is given back.
    SETTING = "Setting"
    #: Rancher's upgradeStrategy.
    STRATEGY = "Strategy"
    #: The taint by which KubeVirt moves VMs away from a node.
    TAINT = "Taint"
    #: An annotation of another object, whose original is given back.
    ANNOTATION = "Annotation"
    #: A file on a node's host.
    FILE = "File"
    #: A hold on a node's system agent.
    HOLD = "Hold"
    #: KubeVirt's workload update methods.
    UPDATE_METHODS = "UpdateMethods"
    #: A VM that the upgrade has stopped, or is about to stop.
    STOPPED_VM = "StoppedVM"
    #: A node that has left for good.
    NODE_LEFT = "NodeLeft"

    @property
    def holds_next_plan(self) -> bool:
        """True if no other plan starts before the entry is settled; other entries pass to the next plan."""
        return self in {LedgerKind.SETTING, LedgerKind.ANNOTATION, LedgerKind.UPDATE_METHODS}


#: The kinds that the next accepted plan copies. Rancher's strategy passes on by its Cluster's annotation alone.
PASSED = (LedgerKind.TAINT, LedgerKind.HOLD, LedgerKind.FILE, LedgerKind.STOPPED_VM, LedgerKind.NODE_LEFT)
#: The kinds that a deleted plan may leave to the next one: a Job may keep it from giving the update methods back.
LEFT = (*PASSED, LedgerKind.UPDATE_METHODS)
_KINDS = frozenset(map(str, LedgerKind))


def entry_id(kind: LedgerKind, *names: str) -> str:
    """Return the identity of an entry, which is a valid key of a ConfigMap."""
    joined = ".".join((kind, *names))
    if len(joined) <= MAX_NAME:
        return joined
    digest = sha256(joined.encode()).hexdigest()[:_DIGEST]
    return f"{joined[: MAX_NAME - _DIGEST - 1]}-{digest}"


def new_entry(kind: LedgerKind, *names: str, object_: str, since: str, **fields: Any) -> Entry:
    """Return an entry; fields without a value are left out."""
    entry = {"id": entry_id(kind, *names), "kind": str(kind), "object": object_, **fields, "since": since}
    return {key: value for key, value in entry.items() if value is not None and value != ""}


def recorded_entries(status: object) -> list[Entry]:
    """Return the valid entries of a status, also those that an earlier version recorded in `originals`."""
    if not isinstance(status, dict):
        return []
    entries = [entry for entry in _dicts(status.get("ledger")) if _is_valid(entry)]
    known = {entry["id"] for entry in entries}
    return [*entries, *(entry for entry in _converted(status) if entry["id"] not in known)]


def of_kind(entries: Iterable[Entry], *kinds: LedgerKind) -> list[Entry]:
    """Return the entries of these kinds."""
    return [entry for entry in entries if entry["kind"] in kinds]


def owes(status: Mapping[str, Any]) -> bool:
    """Return True for a failed plan that has left something; its end has removed its finalizer."""
    return status.get("currentPhase") == FAILED and bool(
        status.get("advised") or of_kind(recorded_entries(status), *PASSED)
    )


def merged(entries: Iterable[Entry], added: Iterable[Entry]) -> list[Entry]:
    """Return the entries with the added ones, each in the place of an entry of its id."""
    found = {entry["id"]: entry for entry in entries}
    found.update((entry["id"], entry) for entry in added)
    return list(found.values())


def _is_valid(entry: Mapping[str, Any]) -> bool:
    return all(isinstance(entry.get(key), str) for key in ("id", "kind", "object")) and entry["kind"] in _KINDS


def _dicts(entries: object) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _converted(status: Mapping[str, Any]) -> list[Entry]:
    """Return the entries of `originals`: object, field, original, applied."""
    found = []
    for one in _dicts(status.get("originals")):
        target, field = one.get("object"), one.get("field")
        if isinstance(target, str) and isinstance(field, str):
            is_strategy = (target, field) == (_CLUSTER, STRATEGY_FIELD)
            kind = LedgerKind.STRATEGY if is_strategy else LedgerKind.SETTING
            values = {key: one.get(key) for key in ("original", "applied")}
            names = (*target.partition(" ")[2].split("/"), field)
            found.append(new_entry(kind, *names, object_=target, field=field, since=_time(status), **values))
    return found


def _time(status: Mapping[str, Any]) -> str:
    """Return the time at which the plan began its node upgrade."""
    for one in _dicts(status.get("phaseTransitionTimestamps")):
        if one.get("phase") == PhaseName.NODE_UPGRADE.active:
            return str(one.get("phaseTransitionTimestamp"))
    return _UNKNOWN_TIME
