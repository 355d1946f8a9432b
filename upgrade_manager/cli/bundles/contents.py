"""The objects in a bundle, as a table: a file with a list of objects each.

collection.py reads them; reader.py reads some of the files again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    ADDON_DESCHEDULER,
    CATTLE_SYSTEM,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    KUBE_SYSTEM,
    LABEL_PLAN_UID,
    LONGHORN_REPLENISHMENT_SETTING,
    LONGHORN_SYSTEM,
    MACHINE_PLAN_SELECTOR,
    MANAGER,
    SETTING_SERVER_VERSION,
)
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.cli.plans import events_of
from upgrade_manager.kube import objects, resources
from upgrade_manager.kube.pager import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: The files from which `status` and `report` read.
PLANS, EVENTS, NODES = "objects/upgradeplans.json", "events/plan.json", "objects/nodes.json"
PODS = ("objects/pods-harvester-system.json", "objects/pods-cattle-system.json", "objects/pods-manager.json")
#: Kinds that blockers name, which are read by name.
_NAMED = {
    one.kind: one
    for one in (
        resources.DATA_VOLUMES,
        resources.DEPLOYMENTS,
        resources.JOBS,
        resources.KUBEVIRTS,
        resources.LONGHORN_VOLUMES,
        resources.MACHINES,
        resources.MANAGED_CHARTS,
        resources.MIGRATIONS,
        resources.PERSISTENT_VOLUME_CLAIMS,
        resources.PODS,
        resources.POD_DISRUPTION_BUDGETS,
        resources.SERVICES,
        resources.SUC_PLANS,
        resources.UPGRADES,
        resources.VALIDATING_WEBHOOK_CONFIGURATIONS,
        resources.VIRTUAL_MACHINES,
        resources.VIRTUAL_MACHINE_IMAGES,
        resources.VIRTUAL_MACHINE_INSTANCES,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file of the bundle, and what it is read from."""

    path: str
    selection: Selection


def parts(plan: Object) -> Iterator[Part]:
    """Yield the lists of a plan's bundle."""
    uid = objects.text(plan, "metadata", "uid")
    yield Part(path=EVENTS, selection=events_of(plan))
    yield Part(path=NODES, selection=Selection(resource=resources.NODES))
    for namespace in (HARVESTER_SYSTEM, CATTLE_SYSTEM):
        for resource in (resources.JOBS, resources.PODS):
            path = f"objects/{resource.plural}-{namespace}.json"
            yield Part(path=path, selection=_of_plan(resource, namespace, uid))
    kinds = (resources.CONFIG_MAPS, resources.DEPLOYMENTS, resources.SERVICES, resources.VIRTUAL_MACHINE_IMAGES)
    for resource in kinds:
        yield Part(path=f"objects/{resource.plural}.json", selection=_of_plan(resource, HARVESTER_SYSTEM, uid))
    yield Part(path="objects/plans.json", selection=_of_plan(resources.SUC_PLANS, CATTLE_SYSTEM, uid))
    secrets = Selection(
        resource=resources.SECRETS, namespace=FLEET_LOCAL, field_selector=MACHINE_PLAN_SELECTOR, metadata_only=True
    )
    yield Part(path="objects/machine-plan-secrets.json", selection=secrets)
    for resource in (resources.PROVISIONING_CLUSTERS, resources.MACHINES, resources.MANAGED_CHARTS):
        yield Part(path=f"objects/{resource.plural}.json", selection=_in(resource, FLEET_LOCAL))
    for resource in (resources.UPGRADES, resources.VERSIONS):
        yield Part(path=f"objects/{resource.plural}.json", selection=_in(resource, HARVESTER_SYSTEM))
    yield from _named(plan)
    for namespace in (HARVESTER_SYSTEM, CATTLE_SYSTEM, FLEET_LOCAL):
        yield Part(path=f"events/{namespace}.json", selection=_in(resources.EVENTS, namespace))


def _named(plan: Object) -> Iterator[Part]:
    """Yield what is read by its name."""
    restored = restore_vm_config_map(objects.name(plan))
    for path, resource, namespace, name in (
        ("restore-vm", resources.CONFIG_MAPS, HARVESTER_SYSTEM, restored),
        ("setting-replenishment", resources.LONGHORN_SETTINGS, LONGHORN_SYSTEM, LONGHORN_REPLENISHMENT_SETTING),
        ("setting-server-version", resources.SETTINGS, "", SETTING_SERVER_VERSION),
        ("addon-descheduler", resources.ADDONS, KUBE_SYSTEM, ADDON_DESCHEDULER),
        ("kubevirt", resources.KUBEVIRTS, HARVESTER_SYSTEM, "kubevirt"),
        ("manager", resources.DEPLOYMENTS, HARVESTER_SYSTEM, MANAGER),
        ("webhook", resources.DEPLOYMENTS, HARVESTER_SYSTEM, f"{MANAGER}-webhook"),
        ("rancher", resources.DEPLOYMENTS, CATTLE_SYSTEM, "rancher"),
        ("system-upgrade-controller", resources.DEPLOYMENTS, CATTLE_SYSTEM, "system-upgrade-controller"),
    ):
        yield Part(path=f"objects/{path}.json", selection=_by_name(resource, namespace, name))
    pods = Selection(
        resource=resources.PODS, namespace=HARVESTER_SYSTEM, label_selector=f"app.kubernetes.io/name={MANAGER}"
    )
    yield Part(path=PODS[-1], selection=pods)
    for number, entry in enumerate(objects.items(plan, "status", "blockers"), start=1):
        found = _NAMED.get(objects.text(entry, "kind"))
        if found is not None:
            selection = _by_name(found, objects.text(entry, "namespace"), objects.text(entry, "name"))
            yield Part(path=f"objects/blocker-{number}.json", selection=selection)


def _of_plan(resource: Resource, namespace: str, uid: str) -> Selection:
    return Selection(resource=resource, namespace=namespace, label_selector=f"{LABEL_PLAN_UID}={uid}")


def _in(resource: Resource, namespace: str) -> Selection:
    return Selection(resource=resource, namespace=namespace)


def _by_name(resource: Resource, namespace: str, name: str) -> Selection:
    return Selection(resource=resource, namespace=namespace, field_selector=f"metadata.name={name}")
