"""A real API server with the manager's permissions and policies, the active plan `upgrade`, and objects of others."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from hack.cluster.impersonation import ActingAs
from hack.control_plane.backend import direct, real_crds
from hack.control_plane.control_plane import ADMIN, ControlPlane
from hack.crds.foreign import our_crd
from tests.support.cluster.cluster_reader import named
from tests.support.managers.manager_policies import install, manager_policies
from tests.support.managers.upgrade import ACCOUNT, rights
from tests.support.programs.polling import eventually
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import (
    ADDON_DESCHEDULER,
    CATTLE_SYSTEM,
    FINALIZER,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    KUBE_SYSTEM,
    LABEL_ACTIVE,
    LABEL_COMPONENT,
    LABEL_PLAN_UID,
    LONGHORN_REPLENISHMENT_SETTING,
    LONGHORN_SYSTEM,
    MACHINE_PLAN_SECRET_TYPE,
    PREFIX,
    JobType,
)
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import (
    ADDONS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    KUBEVIRTS,
    LONGHORN_SETTINGS,
    MANAGED_CHARTS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SERVICES,
    SUC_PLANS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)
from upgrade_manager.kube.transport import Transport
from upgrade_manager.resources.jobs import JobSettings, node_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import repository_deployment, repository_service
from upgrade_manager.resources.suc_plan import PlanSettings, image_preload_plan
from upgrade_manager.resources.toolkit import ToolkitImage
from webhook.certificates.rotation import SECRET as WEBHOOK_SECRET

OTHER_FINALIZER = "example.com/other"
REPOSITORY = "rancher/harvester-upgrade-toolkit"
TAG = "v1.8.0+build-1"
IMAGE = ToolkitImage(repository=REPOSITORY, tag=TAG)
TOOLKIT = {"repository": REPOSITORY, "tag": TAG, "kind": "harvester"}
#: Of which the API server knows only the part that the tests need.
_GROUPS = {
    "upgrade.cattle.io",
    "harvesterhci.io",
    "provisioning.cattle.io",
    "longhorn.io",
    "management.cattle.io",
    "kubevirt.io",
}
_NAMESPACES = (HARVESTER_SYSTEM, CATTLE_SYSTEM, FLEET_LOCAL, LONGHORN_SYSTEM)
_ISO = {"displayName": "x", "sourceType": "download", "url": "http://x/iso"}
_METHODS = {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"], "batchEvictionSize": 2}}
_OPAQUE = {"type": "Opaque", "data": {"token": "c2VjcmV0"}}
#: More than any real object has.
MANY = {f"example.com/label-{number:04}": "v" * 63 for number in range(1000)}
LONG = "n" * 253
LARGE = "x: y\n" * 50_000
#: A running Job of the plan, and its repository.
RUNNING, REPO = "running", "upgrade-repo"


@dataclass(frozen=True, slots=True)
class GuardedCluster:
    """The cluster, and the uid of its active plan."""

    uid: str

    @property
    def owner(self) -> Owner:
        """The active plan."""
        return Owner(name="upgrade", uid=self.uid)

    def job(self, job_type: JobType = JobType.PRE_DRAIN, **pod: Any) -> Object:
        """Return a Job of the plan that does not exist, as the manager creates it; `pod` replaces fields of its Pod."""
        settings = JobSettings(image=IMAGE, service_account="harvester")
        job = node_job(self.owner, settings, node="node-1", job_type=job_type)
        job["spec"]["template"]["spec"] |= pod
        return job

    def deployment(self) -> Object:
        return repository_deployment(self.owner, image=IMAGE, claim="iso", replicas=1)

    def service(self) -> Object:
        return repository_service(self.owner)

    def suc_plan(self, **spec: Any) -> Object:
        """Return the Plan that preloads images; `spec` replaces fields."""
        settings = PlanSettings(image=IMAGE, service_account="system-upgrade-controller")
        plan = image_preload_plan(self.owner, settings, concurrency=1)
        plan["spec"] |= spec
        return plan


def image_list(cluster: GuardedCluster) -> Object:
    """Return a Secret with images to remove."""
    return labelled(manifest(SECRETS, "images", CATTLE_SYSTEM, **_OPAQUE), cluster.uid)


def labelled(manifest: Object, uid: str) -> Object:
    """Add the label of the plan's uid."""
    manifest["metadata"].setdefault("labels", {})[LABEL_PLAN_UID] = uid
    return manifest


def manifest(resource: Resource, name: str, namespace: str = "", **fields: Any) -> Object:
    """Return an object; `labels`, `annotations`, `ownerReferences` and `finalizers` are metadata."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **named(name, namespace, **fields)}


async def prepare(plane: ControlPlane) -> GuardedCluster:
    """Fill the API server."""
    async with direct(plane, token=ADMIN.token) as admin:
        client = RawClient(admin)
        for crd in [*real_crds(plane.assets), our_crd()]:
            if crd["spec"]["group"] in {*_GROUPS, UPGRADE_PLANS.group}:
                await _create(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _open(crd))
        for name in _NAMESPACES:
            await _create(client, "/api/v1/namespaces", {"metadata": {"name": name}})
        for resource, right in rights():
            await _create(client, resource.path(namespace=right["metadata"].get("namespace", "")), right)

        async def plan() -> Object | None:
            created = await client.post(UPGRADE_PLANS.path(), manifest(UPGRADE_PLANS, "upgrade", **_PLAN))
            found: Object | None = created.body if created.status == 201 else None
            return found

        # Definitions are served with a delay.
        active = await eventually(plan, seconds=60)
        await _put_status(client, "upgrade", {"currentPhase": "NodeUpgrading", "toolkitImage": TOOLKIT})
        cluster = GuardedCluster(active["metadata"]["uid"])
        for name, attempt in (("queued", 1), ("failed", 1), ("resumed", 2)):
            other = _OTHER | {"spec": _PLAN["spec"] | {"attempt": attempt}}
            await _create(client, UPGRADE_PLANS.path(), manifest(UPGRADE_PLANS, name, **other))
        for name in ("failed", "resumed"):
            await _put_status(client, name, {"currentPhase": "Failed"})
        for resource, one in _contents(cluster):
            await _create(client, resource.path(namespace=one["metadata"].get("namespace", "")), one)
        await install(admin, account=ACCOUNT, manifests=manager_policies())
        await _until_active(admin, cluster)
        return cluster


def _open(crd: Object) -> Object:
    """Return the definition with a spec and a status that may have more fields."""
    # The definition is parsed once for all tests of a process.
    crd = copy.deepcopy(crd)
    whole = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    # The rules of attempts would refuse plans whose attempts are under way.
    whole.pop("x-kubernetes-validations", None)
    schema = whole["properties"]
    for part in ("spec", "status"):
        schema.get(part, {})["x-kubernetes-preserve-unknown-fields"] = True
    return crd


_PLAN: Object = {
    "labels": {LABEL_ACTIVE: "true", "team": "a"},
    "annotations": {f"{PREFIX}/skip-webhook": "true", f"{PREFIX}/continue": "node-1:Drain"},
    "finalizers": [FINALIZER, OTHER_FINALIZER],
    "spec": {"version": "v1.8.0", "attempt": 2},
}


_OTHER: Object = {"finalizers": [FINALIZER]}


async def _until_active(admin: Transport, cluster: GuardedCluster) -> None:
    """Wait until the API server's copy of the parameters shows the plan."""
    manager = RawClient(ActingAs(admin, user=ACCOUNT))

    async def is_permitted() -> bool:
        return (await manager.post(JOBS.path(namespace=HARVESTER_SYSTEM), cluster.job(), dryRun="All")).status == 201

    await eventually(is_permitted, seconds=60)


async def _put_status(client: RawClient, name: str, status: Object) -> None:
    patched = await client.patch(UPGRADE_PLANS.path(name, subresource="status"), {"status": status})
    assert patched.status == 200, patched.body


async def _create(client: RawClient, path: str, obj: Object) -> None:
    async def is_created() -> bool:
        created = await client.post(path, obj)
        assert created.status in {201, 404, 409}, created.body
        return created.status != 404

    await eventually(is_created, seconds=60)


def _contents(cluster: GuardedCluster) -> list[tuple[Resource, Object]]:
    return [*_plan_contents(cluster), *_foreign_contents(cluster)]


def _plan_contents(cluster: GuardedCluster) -> list[tuple[Resource, Object]]:
    """Return objects of the plan, some as an earlier version created them, without the label of the uid."""
    uid = cluster.uid
    early = _earlier(cluster.job(JobType.POST_DRAIN), "early")
    early["metadata"]["ownerReferences"] = [cluster.owner.reference()]
    return [
        (JOBS, _named(cluster.job(), RUNNING)),
        (JOBS, _suspended(_named(cluster.job(), "suspended"))),
        (JOBS, _elsewhere(_named(cluster.job(), "preload-failed"))),
        (JOBS, early),
        (JOBS, _elsewhere(_earlier(cluster.job(), "early-preload-failed"))),
        (JOBS, _earlier(cluster.job(), "early-orphaned")),
        (DEPLOYMENTS, cluster.deployment()),
        (SERVICES, cluster.service()),
        (SUC_PLANS, cluster.suc_plan()),
        (SECRETS, image_list(cluster)),
        (VIRTUAL_MACHINE_IMAGES, labelled(manifest(VIRTUAL_MACHINE_IMAGES, "iso", HARVESTER_SYSTEM, spec=_ISO), uid)),
        (CONFIG_MAPS, manifest(CONFIG_MAPS, "upgrade-restore-vm", HARVESTER_SYSTEM, data={"node-1": "a/b"})),
    ]


def _foreign_contents(cluster: GuardedCluster) -> list[tuple[Resource, Object]]:
    rke = {"provisionGeneration": 1, "upgradeStrategy": {"controlPlaneConcurrency": "1"}, "registries": {}}
    local = {"kubernetesVersion": "v1", "rkeConfig": rke}
    machine_plan = {"type": MACHINE_PLAN_SECRET_TYPE, "data": {"plan": "eHh4"}}
    addon = {"repo": "http://x/charts", "chart": "x", "version": "1", "enabled": True, "valuesContent": LARGE}
    pointers = ["/spec/workloadUpdateStrategy/workloadUpdateMethods"]
    compared = [{"kind": "KubeVirt", "name": "kubevirt", "jsonPointers": pointers}, {"kind": "Service", "name": "x"}]
    chart = {
        "chart": "harvester",
        "version": "1",
        "values": {"kubevirt": {"spec": _METHODS | {"monitorAccount": "x"}, "enabled": True}, "large": LARGE},
        "diff": {"comparePatches": compared},
    }
    large = machine_plan | {"data": {"plan": "eHh4" * 100_000}, "labels": MANY}
    return [
        (NODES, manifest(NODES, "node-1", labels={"zone": "a", f"{PREFIX}x": "y", "plan.upgrade.cattle.io/p": "1"})),
        (NODES, manifest(NODES, LONG, labels=MANY, annotations=MANY)),
        (SECRETS, manifest(SECRETS, "plan-1", FLEET_LOCAL, **machine_plan)),
        (SECRETS, manifest(SECRETS, LONG, FLEET_LOCAL, **large)),
        (SECRETS, manifest(SECRETS, "kubeconfig", FLEET_LOCAL, **_OPAQUE)),
        (SECRETS, manifest(SECRETS, "rancher-token", CATTLE_SYSTEM, **_OPAQUE)),
        (SECRETS, manifest(SECRETS, WEBHOOK_SECRET, HARVESTER_SYSTEM)),
        (ADDONS, manifest(ADDONS, ADDON_DESCHEDULER, KUBE_SYSTEM, labels=MANY, annotations=MANY, spec=addon)),
        (
            LONGHORN_SETTINGS,
            manifest(LONGHORN_SETTINGS, LONGHORN_REPLENISHMENT_SETTING, LONGHORN_SYSTEM, annotations=MANY, value=LARGE),
        ),
        (PROVISIONING_CLUSTERS, manifest(PROVISIONING_CLUSTERS, "local", FLEET_LOCAL, spec=local)),
        (MANAGED_CHARTS, manifest(MANAGED_CHARTS, "harvester", FLEET_LOCAL, annotations=MANY, spec=chart)),
        (KUBEVIRTS, manifest(KUBEVIRTS, "kubevirt", HARVESTER_SYSTEM, spec=_METHODS | {"monitorAccount": "x"})),
        (JOBS, _named(_unlabelled(cluster.job()), "foreign")),
        (JOBS, _elsewhere(_named(_unlabelled(cluster.job()), "foreign"))),
        (DEPLOYMENTS, _named(_unlabelled(cluster.deployment()), "harvester")),
        (SERVICES, _named(_unlabelled(cluster.service()), "harvester")),
        (VIRTUAL_MACHINE_IMAGES, manifest(VIRTUAL_MACHINE_IMAGES, "users", HARVESTER_SYSTEM, spec=_ISO)),
        (CONFIG_MAPS, manifest(CONFIG_MAPS, "harvester", HARVESTER_SYSTEM, data={"a": "b"})),
    ]


def _named(obj: Object, name: str) -> Object:
    obj["metadata"]["name"] = name
    return obj


def _suspended(obj: Object) -> Object:
    obj["spec"]["suspend"] = True
    return obj


def _elsewhere(obj: Object) -> Object:
    obj["metadata"]["namespace"] = CATTLE_SYSTEM
    return obj


def _earlier(obj: Object, name: str) -> Object:
    component = obj["metadata"]["labels"][LABEL_COMPONENT]
    obj["metadata"] |= {"labels": {LABEL_COMPONENT: component}, "ownerReferences": []}
    return _named(obj, name)


def _unlabelled(obj: Object) -> Object:
    obj["metadata"] |= {"labels": {"app": "harvester"}, "ownerReferences": []}
    return obj
