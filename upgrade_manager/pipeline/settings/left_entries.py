"""The entries of the ledger that deleted plans have left in an annotation of Rancher's cluster for the next plan.

../ending/passing_on.py writes the annotation. The next plan records the entries at the beginning of its node upgrade
(../node_upgrade/phase.py), on a single node at the end of it (unfinished_upgrade.py), and removes the annotation.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_LEDGER
from upgrade_manager.api.ledger import PASSED, of_kind, recorded_entries
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object


def read(cluster: Object) -> list[Entry]:
    """Return the entries that a deleted plan has left for the next one (../ending/passing_on.py)."""
    try:
        raw = json.loads(objects.annotations_of(cluster).get(ANNOTATION_LEDGER, "[]"))
    except (ValueError, RecursionError):
        return []
    found = of_kind(recorded_entries({"ledger": raw}), *PASSED)
    return [entry for entry in found if parse_time(entry.get("since")) is not None]
