"""Which plan has the cluster, as its statuses tell whoever sees them written; never two at the same time."""

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

#: After those an upgrade makes nothing any more, and takes away what it has made.
_OVER = {PhaseName.IMAGE_CLEANUP.completed, SUCCEEDED, FAILED}


@dataclass(kw_only=True)
class Tenant:
    """One plan that was accepted or blocked."""

    name: str
    uid: str
    history: History = field(default_factory=History)
    is_restored: bool = False
    is_deleted: bool = False
    is_gone: bool = False

    @property
    def has_cluster(self) -> bool:
        """Whether nobody else may have it."""
        last = self.history.last
        if self.is_gone or last in {"", SUCCEEDED}:
            return False
        return last != FAILED or not self.is_restored

    @property
    def may_remove(self) -> bool:
        """Whether it may take away what it has made."""
        return self.is_deleted or self.history.last in _OVER

    @property
    def may_create(self) -> bool:
        """Whether there is something left to do."""
        return not self.is_gone and self.history.last not in {"", *_OVER}


class Tenure:
    """All plans, by uid: a name may be used again."""

    def __init__(self) -> None:
        self._tenants: dict[str, Tenant] = {}

    @property
    def living(self) -> list[Tenant]:
        """Those that are not gone, and not blocked."""
        return [one for one in self._tenants.values() if not (one.is_gone or one.history.is_blocked)]

    def named(self, name: str) -> Tenant | None:
        """The living one of that name."""
        return next((one for one in self.living if one.name == name), None)

    def of(self, uid: str) -> Tenant | None:
        """The one with that uid."""
        return self._tenants.get(uid)

    def deleted(self, name: str) -> None:
        """Somebody wants the plan gone."""
        for one in self._tenants.values():
            one.is_deleted = one.is_deleted or one.name == name

    def status(self, plan: Object) -> Iterator[str]:
        """The plan's status was written; what is wrong with it."""
        tenant = self._tenant(plan)
        yield from tenant.history.see(plan)
        self._look(tenant, plan)
        holders = [one.name for one in self._tenants.values() if one.has_cluster]
        if len(holders) > 1:
            yield f"plans {holders} have the cluster at the same time"

    def changed(self, plan: Object) -> Iterator[str]:
        """Something else of the plan was written; what is wrong with it."""
        tenant = self._tenant(plan)
        if tenant.history.is_blocked and not tenant.is_deleted:
            yield "touches a plan that is blocked for good"
        self._look(tenant, plan)

    def _tenant(self, plan: Object) -> Tenant:
        uid = objects.uid(plan)
        return self._tenants.setdefault(uid, Tenant(name=objects.name(plan), uid=uid))

    def _look(self, tenant: Tenant, plan: Object) -> None:
        metadata = objects.metadata(plan)
        tenant.is_restored = objects.annotations_of(plan).get(ANNOTATION_RESTORED) == "true"
        tenant.is_deleted = objects.is_deleting(plan)
        tenant.is_gone = tenant.is_deleted and not metadata.get("finalizers")
