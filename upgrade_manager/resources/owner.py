"""The plan as the owner of created objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import LABEL_COMPONENT, LABEL_PLAN
from upgrade_manager.api.names import label_value
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.api.keys import Component
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The UpgradePlan that owns created objects, by name in labels and by uid in owner references."""

    name: str
    uid: str

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
        """Return True if this plan controls the object; labels alone may be those of a deleted plan of that name."""
        return objects.owner_uid(obj) == self.uid

    def labels(self, component: Component) -> dict[str, str]:
        """Return the labels by which the object is found."""
        return {LABEL_PLAN: label_value(self.name), LABEL_COMPONENT: component.value}

    def selector(self, component: Component | None = None) -> str:
        """Return the label selector of the plan's objects, or of one component."""
        wanted = f"{LABEL_PLAN}={label_value(self.name)}"
        return f"{wanted},{LABEL_COMPONENT}={component.value}" if component else wanted

    def manifest(
        self,
        resource: Resource,
        name: str,
        component: Component,
        *,
        namespace: str,
        labels: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Build an object without a spec: kind, name, labels and owner."""
        return {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {**self.labels(component), **(labels or {})},
                "ownerReferences": [self.reference()],
            },
        }
