"""Which plan has the cluster, according to the written statuses; never two at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.status_rules import History
from upgrade_manager.api.keys import ANNOTATION_RESTORED
from upgrade_manager.api.phases import FAILED, SUCCEEDED, PhaseName
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object

#: Phases after which an upgrade creates nothing and removes its objects.
_ENDED = {PhaseName.IMAGE_CLEANUP.completed, SUCCEEDED, FAILED}


@dataclass(kw_only=True)
class Tenant:
    """A plan that was accepted or blocked."""

    name: str
    uid: str
    history: History = field(default_factory=History)
    is_restored: bool = False
    is_deleting: bool = False
    is_deleted: bool = False

    @property
    def has_cluster(self) -> bool:
        """True while no other plan may have the cluster."""
        last = self.history.last
        if self.is_deleted or last in {"", SUCCEEDED}:
            return False
        return last != FAILED or not self.is_restored

    @property
    def may_remove(self) -> bool:
        """True when the plan may remove its objects."""
        return self.is_deleting or self.history.last in _ENDED

    @property
    def may_create(self) -> bool:
        """True while the plan may create objects."""
        return not self.is_deleted and self.history.last not in {"", *_ENDED}


class Tenure:
    """All plans by uid, because a name may be used again."""

    def __init__(self) -> None:
        self._tenants: dict[str, Tenant] = {}

    @property
    def living(self) -> list[Tenant]:
        """Return the plans that are neither deleted nor blocked."""
        return [one for one in self._tenants.values() if not (one.is_deleted or one.history.is_blocked)]

    def named(self, name: str) -> Tenant | None:
        """Return the living plan with this name."""
        return next((one for one in self.living if one.name == name), None)

    def of(self, uid: str) -> Tenant | None:
        """Return the plan with this uid."""
        return self._tenants.get(uid)

    def deleted(self, name: str) -> None:
        """Record a request to delete the plan."""
        for one in self._tenants.values():
            one.is_deleting = one.is_deleting or one.name == name

    def status(self, plan: Object) -> Iterator[str]:
        """Record a write of the plan's status and yield its violations."""
        tenant = self._tenant(plan)
        yield from tenant.history.see(plan)
        self._look(tenant, plan)
        holders = [one.name for one in self._tenants.values() if one.has_cluster]
        if len(holders) > 1:
            yield f"plans {holders} have the cluster at the same time"

    def changed(self, plan: Object) -> Iterator[str]:
        """Record another write of the plan and yield its violations."""
        tenant = self._tenant(plan)
        if tenant.history.is_blocked and not tenant.is_deleting:
            yield "touches a plan that is blocked for good"
        self._look(tenant, plan)

    def _tenant(self, plan: Object) -> Tenant:
        uid = objects.uid(plan)
        return self._tenants.setdefault(uid, Tenant(name=objects.name(plan), uid=uid))

    def _look(self, tenant: Tenant, plan: Object) -> None:
        metadata = objects.metadata(plan)
        tenant.is_restored = objects.annotations_of(plan).get(ANNOTATION_RESTORED) == "true"
        tenant.is_deleting = objects.is_deleting(plan)
        tenant.is_deleted = tenant.is_deleting and not metadata.get("finalizers")
