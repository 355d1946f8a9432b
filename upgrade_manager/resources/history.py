"""The ConfigMap with the history of a plan, of which it is a dependent; pipeline/history.py writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_PLAN, LABEL_PLAN_UID
from upgrade_manager.api.names import history_config_map, label_value
from upgrade_manager.kube.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.resources.owner import Owner


def history_map(owner: Owner, data: Mapping[str, str]) -> Object:
    """Build the ConfigMap; it belongs to no component and to all attempts of the plan."""
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": history_config_map(owner.name),
            "namespace": HARVESTER_SYSTEM,
            "labels": {LABEL_PLAN: label_value(owner.name), LABEL_PLAN_UID: owner.uid},
            "ownerReferences": [owner.reference()],
        },
        "data": dict(data),
    }
