"""Acts of users, webhooks and other controllers on a cluster during a random upgrade."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.random_runs import acts_on_nodes, acts_on_objects, acts_on_rancher, acts_on_settings
from tests.support.random_runs.acts_of_holders import HOLDERS
from tests.support.random_runs.refusals import REFUSALS
from upgrade_manager.kube.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.managers.upgrade import UpgradeRun

#: Interference after which the strategy is another one than before the upgrade.
CHANGES_STRATEGY = frozenset({"strategy removed", "strategy edited"})
#: Interference after which a node may be drained before its Job has prepared it.
BY_HAND = "a hook answered by hand"
#: Interference after which Rancher downgrades nodes whose strategy is given back.
SET_BACK = "Kubernetes set back"
#: Interference after which the generation is.
CHANGES_GENERATION = frozenset({"all nodes planned again", "all nodes planned twice", SET_BACK, BY_HAND})
#: Interference after which a node boots once more.
RESTARTS = "a done node restarted"
#: Interference after which a node may not be as the upgrade has left it.
OFF_EARLY = "a node off early"
#: Interference after which a failed plan cannot be resumed.
IMAGE_DELETED = "image deleted"
MOVES_NODES = frozenset({RESTARTS, OFF_EARLY, "a done node cordoned", "a Node deleted"})
#: Interference after which a setting keeps the user's value: the object's title, and the value.
SET_BY_USERS = {
    "descheduler enabled": ("Addon kube-system/descheduler", acts_on_settings.USERS_DESCHEDULER),
    "interval set": (
        "Setting longhorn-system/replica-replenishment-wait-interval",
        acts_on_settings.USERS_INTERVAL,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """One act, some virtual seconds after the plan has recorded so many phase values."""

    what: str
    phases: int
    seconds: float
    #: Virtual seconds until it is undone, where it is.
    lasts: float
    node: str
    #: Response of a webhook that refuses something.
    status: int

    async def act(self, stage: UpgradeRun) -> None:
        """Do it, unless the object does not exist."""
        with suppress(NotFound):
            await (ACTS | HOLDERS)[self.what](stage, self)


#: Drawn apart, so that the other decisions of a seed stay as they were.
NEWER: dict[str, Callable[[UpgradeRun, Interference], Awaitable[None]]] = {
    SET_BACK: acts_on_rancher.kubernetes_set_back,
    "a Job suspended": acts_on_objects.job_suspended,
    "a Machine stuck": acts_on_rancher.machine_stuck,
    BY_HAND: acts_on_rancher.hook_answered,
    OFF_EARLY: acts_on_nodes.node_off_early,
    "cordons refused": acts_on_rancher.cordons_refused,
    IMAGE_DELETED: acts_on_objects.image_deleted,
    "taints wiped": acts_on_rancher.drain_taint_wiped,
}
ACTS: dict[str, Callable[[UpgradeRun, Interference], Awaitable[None]]] = {
    "a Job deleted": acts_on_objects.job_deleted,
    "a Node deleted": acts_on_nodes.node_deleted,
    "a done node cordoned": acts_on_nodes.node_cordoned,
    RESTARTS: acts_on_nodes.node_restarted,
    "a label flapping": acts_on_nodes.label_flapping,
    "a label missing": acts_on_nodes.label_missing,
    "all labels missing": acts_on_nodes.labels_missing,
    "descheduler enabled": acts_on_settings.descheduler_enabled,
    "interval set": acts_on_settings.interval_set,
    "list of VMs deleted": acts_on_objects.list_deleted,
    "plan replaced": acts_on_settings.plan_replaced,
    "preload disabled": acts_on_settings.preload_disabled,
    "repository deleted": acts_on_objects.repository_deleted,
    "repository scaled down": acts_on_objects.repository_scaled_down,
    "repository's Service deleted": acts_on_objects.service_deleted,
    "strategy edited": acts_on_settings.strategy_edited,
    "strategy removed": acts_on_settings.strategy_removed,
    "version deleted": acts_on_objects.version_deleted,
    "all nodes planned again": acts_on_settings.planned_again,
    "all nodes planned twice": acts_on_settings.planned_twice,
    **REFUSALS,
    **NEWER,
}
