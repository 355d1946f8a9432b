"""The remedy for a drain hook that another controller does not acknowledge.

node_upgrade/waits.py adds it to the wait for the hook.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, RKE_POST_DRAIN
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.remedy import steps
from upgrade_manager.facts.drain_hooks import remove_command
from upgrade_manager.pipeline.settings.rancher import rke_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object


def remedy(cluster: Object | None, hooks: Sequence[str], *, drained: str = "") -> str:
    """Return the commands that acknowledge these hooks, or remove them from Rancher's cluster, which may be unknown.

    `drained` is the Secret of a node whose post-drain hook waits: Rancher keeps the drain options of such a node.
    """
    strategy = rke_config(cluster).get("upgradeStrategy") if cluster else None
    remove = remove_command(strategy, frozenset(hooks))
    return steps(
        f"Start the controller that sets annotation {name_list(hooks)} of the Secret",
        f"Or remove its hook from the drain options: {remove}",
        *(
            f"And acknowledge it for this node, which is drained: {_acknowledge(drained, one)}"
            for one in hooks
            if drained
        ),
    )


def _acknowledge(secret: str, hook: str) -> str:
    place = f"secret -n {FLEET_LOCAL} {secret}"
    path = RKE_POST_DRAIN.replace(".", r"\.")
    value = f"kubectl get {place} -o jsonpath='{{.metadata.annotations.{path}}}'"
    return f'kubectl annotate {place} {shlex.quote(hook)}="$({value})"'
