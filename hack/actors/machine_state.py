"""The state of one machine's plan, as Rancher's planner reads it from the Secret; plan_secrets.py writes a part of it.

The rules are those of rancher/rancher v2.14.0: SecretToNode and getPlanStatusReasonMessage in
pkg/capr/planner/store.go, the others in planner.go beside it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.machine_plan import DRAIN_OPTIONS, POST_DRAIN, PRE_DRAIN, PROBES_PASSED, UNCORDON
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: A machine with one of these annotations is in a drain; drain-done alone does not count (isInDrain).
_IN_DRAIN = (PRE_DRAIN, POST_DRAIN, DRAIN_OPTIONS, UNCORDON)
WAITING_FOR_PLAN = "waiting for plan to be applied"
_FAILED = "failure while applying plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """One Secret and the plan that its machine should have."""

    secret: Object
    wanted: bytes
    plan: bytes
    applied: bytes
    #: Names of the probes that fail. No probe at all counts as healthy, as after each write of a plan.
    unhealthy: tuple[str, ...]

    @property
    def annotations(self) -> dict[str, str]:
        """Return the Secret's annotations."""
        return objects.annotations_of(self.secret)

    @property
    def in_sync(self) -> bool:
        """Report whether the machine has applied its plan."""
        return self.plan == self.applied

    @property
    def in_drain(self) -> bool:
        """Report whether a drain of the machine is in progress."""
        return any(self.annotations.get(key) for key in _IN_DRAIN)

    @property
    def has_change(self) -> bool:
        """Report whether the machine should have another plan."""
        return self.plan != self.wanted

    @property
    def is_minor(self) -> bool:
        """Report whether that plan differs in minor files only; the machine gets it at once, whatever else happens."""
        return self.has_change and plans.major_part(self.plan) == plans.major_part(self.wanted)

    @property
    def has_failed(self) -> bool:
        """Report whether the agent failed to apply the plan that the machine has."""
        count = int(plans.data(self.secret, "failure-count").decode() or "0")
        return count > 0 and plans.data(self.secret, "failed-checksum").decode() == checksum(self.plan)

    @property
    def is_unavailable(self) -> bool:
        """Report whether the machine counts against the concurrency of its tier (isUnavailable)."""
        return not self.in_sync or self.in_drain or (not self.has_change and bool(self.unhealthy))

    @property
    def may_change(self) -> bool:
        """Report whether the machine gets a new plan however many are unavailable.

        It is draining, its plan failed, or the probes of its applied plan have never passed.
        """
        never = self.in_sync and bool(self.unhealthy) and not self.annotations.get(PROBES_PASSED)
        return self.in_drain or self.has_failed or never

    @property
    def status_message(self) -> str:
        """Return the planner's words about the plan; empty for one that is applied and healthy."""
        if self.unhealthy:
            return f"waiting for probes: {', '.join(self.unhealthy)}"
        if self.in_sync:
            return ""
        return _FAILED if self.has_failed else WAITING_FOR_PLAN


def state_of(secret: Object, wanted: bytes) -> MachineState:
    """Read the state of a Secret."""
    return MachineState(
        secret=secret,
        wanted=wanted,
        plan=plans.data(secret, "plan"),
        applied=plans.data(secret, "appliedPlan"),
        unhealthy=failing_probes(secret),
    )


def failing_probes(secret: Object) -> tuple[str, ...]:
    """Return the names of the probes that fail, sorted."""
    statuses = json.loads(plans.data(secret, "probe-statuses") or b"{}")
    return tuple(sorted(name for name, one in statuses.items() if not one.get("healthy")))


def checksum(plan: bytes) -> str:
    """Return the digest by which agent and Rancher name a plan."""
    return hashlib.sha256(plan).hexdigest()
