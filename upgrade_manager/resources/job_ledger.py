"""The ConfigMap in which the toolkit's Jobs record what they are about to change: one key for each entry of the ledger.

toolkit/run/ledger.py writes it, pipeline/job_ledger.py copies its entries into the plan's status.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.api.ledger import LedgerKind, new_entry
from upgrade_manager.api.names import ledger_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import CONFIG_MAPS, VIRTUAL_MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.resources.owner import Owner

#: The kinds that Jobs change; the manager changes settings.
_KINDS = frozenset(
    map(str, (LedgerKind.STOPPED_VM, LedgerKind.TAINT, LedgerKind.FILE, LedgerKind.HOLD, LedgerKind.UPDATE_METHODS))
)
_TEXTS = ("kind", "object", "node", "field", "since")
_VALUES = ("original", "applied")


def stopped_vm(instance: Object, *, node: str, since: str) -> Entry:
    """Return the entry of a VM that may be stopped for the node."""
    namespace, name = objects.key(instance)
    target = f"{VIRTUAL_MACHINES.kind} {namespace}/{name}"
    return new_entry(LedgerKind.STOPPED_VM, namespace, name, object_=target, node=node, since=since)


def ledger_map(owner: Owner, entries: Iterable[Entry]) -> Object:
    """Build the ConfigMap of a plan with these entries."""
    name = ledger_config_map(owner.name)
    manifest = owner.manifest(CONFIG_MAPS, name, Component.NODE_UPGRADE, namespace=HARVESTER_SYSTEM)
    return {**manifest, "data": data_of(entries)}


def data_of(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the keys of the entries."""
    return {entry["id"]: json.dumps(entry, separators=(",", ":"), sort_keys=True) for entry in entries}


def entries_of(found: Object) -> list[Entry]:
    """Return the valid entries of the ConfigMap."""
    parsed = (_parse(key, text) for key, text in sorted(objects.mapping(found, "data").items()))
    return [entry for entry in parsed if entry is not None]


def _parse(key: str, text: object) -> Entry | None:
    try:
        raw: Any = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or raw.get("kind") not in _KINDS:
        return None
    texts = {name: raw.get(name, "") for name in _TEXTS}
    if not all(isinstance(value, str) for value in texts.values()) or not (texts["object"] and texts["since"]):
        return None
    values = {name: raw[name] for name in _VALUES if raw.get(name) is not None}
    return {"id": key, **{name: value for name, value in texts.items() if value}, **values}
