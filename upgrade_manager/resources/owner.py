"""The plan as the owner of created objects.

The label with the plan's uid ties an object to its plan. An ownerReference would let a deletion of the plan in the
foreground delete it at once: the garbage collector deletes every dependent of such an owner. Therefore only objects
that may be deleted at any time have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from upgrade_manager.api.attempts import attempt_of
from upgrade_manager.api.keys import LABEL_ATTEMPT, LABEL_COMPONENT, LABEL_PLAN, LABEL_PLAN_UID
from upgrade_manager.api.names import FIRST_ATTEMPT, component_name, label_value
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.api.keys import Component, JobType
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource


def owner_reference(resource: Resource, obj: Object) -> dict[str, Any]:
    """Return a reference to an owner that does not control the object, for garbage collection."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": objects.name(obj),
        "uid": objects.uid(obj),
    }


def plan_uid(obj: Object) -> str:
    """Return the uid of the plan that an object was created for, or "".

    An object without the label, which an earlier version created, belongs to the plan that controls it.
    """
    return objects.labels(obj).get(LABEL_PLAN_UID) or objects.owner_uid(obj)


def created_in(obj: Object) -> int:
    """Return the attempt of the plan in which an object was created."""
    label = objects.labels(obj).get(LABEL_ATTEMPT, "")
    return int(label) if label.isdecimal() else FIRST_ATTEMPT


def described_owner(obj: Object) -> str:
    """Return kind, name and uid of the plan of an object's labels, else of its owners; empty without any."""
    labels = objects.labels(obj)
    if LABEL_PLAN_UID in labels:
        return f"{UPGRADE_PLANS.kind} {labels.get(LABEL_PLAN, '')} (uid {labels[LABEL_PLAN_UID]})"
    references: list[dict[str, Any]] = objects.metadata(obj).get("ownerReferences") or []
    return ", ".join(f"{owner.get('kind')} {owner.get('name')} (uid {owner.get('uid')})" for owner in references)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The UpgradePlan that owns created objects, by name and uid in labels."""

    name: str
    uid: str
    #: The attempt for which Jobs and SUC Plans are created; their names have it.
    attempt: int = FIRST_ATTEMPT
    #: True if SUC Plans of an earlier version are left, or Jobs of them: they never get the label with the uid.
    has_unlabeled: bool = False

    @classmethod
    def of(cls, plan: Object, *, has_unlabeled: bool) -> Self:
        """Return the plan as the owner of what its present attempt creates."""
        attempt = attempt_of(objects.status(plan))
        return cls(name=objects.name(plan), uid=objects.uid(plan), attempt=attempt, has_unlabeled=has_unlabeled)

    def name_of(self, component: Component, *, job_type: JobType | None = None, node: str = "") -> str:
        """Return the name of a Job or a SUC Plan of the present attempt."""
        return component_name(self.name, component, job_type=job_type, node=node, attempt=self.attempt)

    def reference(self) -> dict[str, Any]:
        """Return the controlling owner reference, for garbage collection."""
        return {
            "apiVersion": UPGRADE_PLANS.api_version,
            "kind": UPGRADE_PLANS.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def owns(self, obj: Object) -> bool:
        """Return True if the object was created for this plan, not for a deleted plan of that name."""
        return plan_uid(obj) == self.uid

    def labels(self, component: Component) -> dict[str, str]:
        """Return the labels of a created object and of its Pods."""
        attempt = {LABEL_ATTEMPT: str(self.attempt)} if self.attempt > FIRST_ATTEMPT else {}
        return {**self.match_labels(component), LABEL_PLAN_UID: self.uid, **attempt}

    def match_labels(self, component: Component) -> dict[str, str]:
        """Return the labels by which a Deployment or a Service selects its Pods, also those of an earlier version."""
        return {LABEL_PLAN: label_value(self.name), LABEL_COMPONENT: component.value}

    def selector(self, component: Component | None = None) -> str:
        """Return the label selector of the plan's objects, or of one component."""
        return _with_component(f"{LABEL_PLAN_UID}={self.uid}", component)

    def suc_selector(self, component: Component | None = None) -> str:
        """Return the label selector of the SUC Plans and their Jobs; `owns` decides about each."""
        wanted = f"{LABEL_PLAN}={label_value(self.name)}"
        return _with_component(wanted, component) if self.has_unlabeled else self.selector(component)

    def unlabeled_selector(self) -> str:
        """Return the label selector of objects that an earlier version created for a plan of this name."""
        return f"{LABEL_PLAN}={label_value(self.name)},!{LABEL_PLAN_UID}"

    def manifest(
        self,
        resource: Resource,
        name: str,
        component: Component,
        *,
        namespace: str,
        labels: Mapping[str, str] | None = None,
        is_dependent: bool = False,
    ) -> dict[str, Any]:
        """Build an object without a spec: kind, name and labels; a dependent has the controlling ownerReference."""
        return {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {**self.labels(component), **(labels or {})},
                **({"ownerReferences": [self.reference()]} if is_dependent else {}),
            },
        }


def _with_component(selector: str, component: Component | None) -> str:
    return f"{selector},{LABEL_COMPONENT}={component.value}" if component else selector
