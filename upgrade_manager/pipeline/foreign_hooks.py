"""What a user does about a drain hook that another controller does not acknowledge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.blockers.remedy import steps
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.nodes.sequencing import name_list
from upgrade_manager.pipeline import upgrade_strategy
from upgrade_manager.pipeline.rancher import rke_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object

_CLUSTER = f"-n {FLEET_LOCAL} {PROVISIONING_CLUSTERS.name} {PROVISIONING_CLUSTER}"


def remedy(cluster: Object | None, hooks: Sequence[str]) -> str:
    """Return how these hooks are acknowledged, or removed from Rancher's cluster; None if it is not known."""
    strategy = rke_config(cluster).get("upgradeStrategy") if cluster else None
    changed = upgrade_strategy.without_foreign_hooks(strategy, frozenset(hooks))
    if changed:
        body = {"spec": {"rkeConfig": {"upgradeStrategy": changed}}}
        remove = f"kubectl patch {_CLUSTER} --type=merge -p '{json.dumps(body, separators=(',', ':'))}'"
    else:
        remove = f"kubectl edit {_CLUSTER}"
    return steps(
        f"Start the controller that sets annotation {name_list(hooks)} of the Secret",
        f"Or remove its hook from preDrainHooks and postDrainHooks: {remove}",
    )
