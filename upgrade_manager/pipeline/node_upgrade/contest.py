"""Another client that removes the manager's drain hooks again and again: one blocker, in place of an event each time.

state.py keeps the count for phase.py, which adds the hooks again; settings/rancher.py has the patch and its event.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, MANAGER, PROVISIONING_CLUSTER
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.known_wait import ContestedStrategyWait
from upgrade_manager.facts.field_managers import last_manager
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.pipeline.blocker_report import known_since

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

#: The removal from which on the strategy is contested.
TIMES = 3
#: The time without a removal after which the contest is over.
OVER = timedelta(minutes=5)
_SHOW = (
    f"kubectl get {PROVISIONING_CLUSTERS.name} -n {FLEET_LOCAL} {PROVISIONING_CLUSTER} -o yaml --show-managed-fields"
)


@dataclass(slots=True)
class Contest:
    """The removals of the hooks that this process has seen."""

    times: int = 0
    #: The time of the first and of the last removal; None before one.
    since: datetime | None = None
    last: datetime | None = None
    #: The client that removed them last; empty if unknown.
    client: str = ""

    def record(self, ctx: ReconcileContext, cluster: Object) -> bool:
        """Count a removal; return True if the strategy is contested, so that the removal needs no event."""
        now = ctx.now()
        if self.last is None or now - self.last >= OVER:
            known = known_since(ctx, ContestedStrategyWait, PROVISIONING_CLUSTER)
            self.since, self.times = known or now, TIMES if known else 0
        self.times, self.last = self.times + 1, now
        path = ("spec", "rkeConfig", "upgradeStrategy")
        self.client = last_manager(cluster, *path, besides=MANAGER) or last_manager(cluster, "spec", besides=MANAGER)
        return self.times >= TIMES

    def waits(self, ctx: ReconcileContext) -> Iterator[ContestedStrategyWait]:
        """Yield the wait while the strategy is contested."""
        if self.since is None or self.last is None or self.times < TIMES or ctx.now() - self.last >= OVER:
            return
        named = f"client {self.client}" if self.client else "another client"
        stop = f"Stop {named}" if self.client else "Stop that client"
        yield ContestedStrategyWait(
            namespace=FLEET_LOCAL,
            name=PROVISIONING_CLUSTER,
            since=self.since,
            detail=f"{named} removes the manager's drain hooks from spec.rkeConfig.upgradeStrategy again and again",
            remedies=(
                Remedy(f"{stop}, or let it leave spec.rkeConfig.upgradeStrategy alone until the upgrade has ended"),
                Remedy("Show which client writes which field", command=_SHOW),
            ),
        )
