from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import LABEL_COMPONENT, LABEL_PLAN
from upgrade_manager.api.names import label_value
from upgrade_manager.kube.objects import owner_uid
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.api.keys import Component
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The UpgradePlan that owns what is built: its name goes into labels, its uid into owner references."""

    name: str
    uid: str

    def reference(self) -> dict[str, Any]:
        """The controlling owner reference, by which the garbage collector removes the object with its plan."""
        return {
            "apiVersion": UPGRADE_PLANS.api_version,
            "kind": UPGRADE_PLANS.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def owns(self, obj: Object) -> bool:
        """Whether the object is this plan's: not one that merely carries its labels, such as a namesake's."""
        return owner_uid(obj) == self.uid

    def labels(self, component: Component) -> dict[str, str]:
        """By these the object is found again, whatever the length of the plan's name."""
        return {LABEL_PLAN: label_value(self.name), LABEL_COMPONENT: component.value}

    def selector(self, component: Component | None = None) -> str:
        """The label selector that matches the plan's objects, or one component of them."""
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
        """An object without a spec: kind, name, labels and owner."""
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
