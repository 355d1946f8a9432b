"""Labels that the system-upgrade-controller sets on nodes after their Plan was deleted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import suc_node_label
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.apiserver.history import Entry
    from hack.apiserver.storage import Storage

PREFIX = suc_node_label("")


class LateLabels:
    """Sees such labels when they are stored.

    When a Job is complete, the real controller reads the Plan, then updates the node. A Plan that is deleted in between
    leaves its label behind, whatever the manager does; a label that is older than the deletion is the manager's fault.
    """

    def __init__(self, storage: Storage) -> None:
        self.found: Counter[str] = Counter()
        self._plans: set[str] = set()
        storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        if collection == "plans.upgrade.cattle.io":
            change = self._plans.discard if entry.kind == "DELETED" else self._plans.add
            change(entry.stored.name)
        elif collection == "nodes" and entry.previous is not None:
            added = objects.labels(entry.stored.object).keys() - objects.labels(entry.previous.object).keys()
            keys = [key for key in added if key.startswith(PREFIX)]
            self.found.update(key for key in keys if key.removeprefix(PREFIX) not in self._plans)
