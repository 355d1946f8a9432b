"""A minimal upgrade without the manager's code: it runs each step and waits for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.polling import eventually
from upgrade_manager.api.keys import CATTLE_SYSTEM, FLEET_LOCAL, HARVESTER_SYSTEM, RKE_MACHINE_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    JOBS,
    MACHINES,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SERVICES,
    SUC_PLANS,
    VIRTUAL_MACHINE_IMAGES,
)

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

PRE_HOOK = "management.harvesterhci.io/pre-hook"
POST_HOOK = "management.harvesterhci.io/post-hook"
TOLERATIONS = [
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "kubevirt.io/drain", "operator": "Exists", "effect": "NoSchedule"},
]


def image(name: str, url: str, **spec: Any) -> Object:
    """Return a VirtualMachineImage of an upgrade ISO."""
    return {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "VirtualMachineImage",
        "metadata": {
            "name": name,
            "namespace": HARVESTER_SYSTEM,
            "annotations": {"harvesterhci.io/os-upgrade-image": "True"},
        },
        "spec": {
            "backend": "cdi",
            "displayName": name,
            "sourceType": "download",
            "url": url,
            "retry": 3,
            "targetStorageClassName": "longhorn-static",
        }
        | spec,
    }


def repository(plan: str, claim: str, *, replicas: int = 2) -> list[tuple[Any, Object]]:
    """Return Deployment and Service of a plan's repository."""
    labels = {"plan": plan, "component": "repo"}
    container = {
        "name": "repo",
        "image": "rancher/harvester-upgrade-toolkit:v1.8.0",
        "command": ["sh", "-c", "nginx"],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "iso", "mountPath": "/iso"}],
    }
    pod = {
        "containers": [container],
        "tolerations": TOLERATIONS,
        "volumes": [{"name": "iso", "persistentVolumeClaim": {"claimName": claim}}],
    }
    metadata = {"name": f"{plan}-repo", "namespace": HARVESTER_SYSTEM}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": 80}]},
    }
    return [(DEPLOYMENTS, deployment), (SERVICES, service)]


def suc_plan(name: str, plan: str, *, args: list[str], concurrency: int = 3) -> Object:
    """Return a system-upgrade-controller Plan for all managed nodes."""
    return {
        "apiVersion": "upgrade.cattle.io/v1",
        "kind": "Plan",
        "metadata": {"name": name, "namespace": CATTLE_SYSTEM},
        "spec": {
            "concurrency": concurrency,
            "jobActiveDeadlineSecs": 21600,
            "version": "v1.8.0",
            "serviceAccountName": "system-upgrade-controller",
            "nodeSelector": {"matchLabels": {"harvesterhci.io/managed": "true"}},
            "tolerations": TOLERATIONS,
            "upgrade": {
                "image": "rancher/harvester-upgrade-toolkit",
                "command": [args[0]],
                "args": args[1:],
                "envs": [{"name": "HARVESTER_UPGRADEPLAN_NAME", "value": plan}],
            },
        },
    }


def job(name: str, plan: str, *, command: list[str], node: str = "", **spec: Any) -> Object:
    """Return a Job of the toolkit, bound to a node if one is given."""
    field = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    container: Object = {
        "name": "apply",
        "image": "rancher/harvester-upgrade-toolkit:v1.8.0",
        "command": command[:1],
        "args": command[1:],
        "env": [
            {"name": "HARVESTER_UPGRADEPLAN_NAME", "value": plan},
            {"name": "HARVESTER_UPGRADE_NODE_NAME", "value": node},
            {"name": "HARVESTER_UPGRADE_POD_NAME", **field},
        ],
    }
    pod: Object = {"restartPolicy": "Never", "containers": [container], "tolerations": TOLERATIONS}
    if node:
        container["securityContext"] = {"privileged": True}
        container["volumeMounts"] = [{"name": "host", "mountPath": "/host"}]
        pod |= {"nodeName": node, "hostPID": True, "volumes": [{"name": "host", "hostPath": {"path": "/"}}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": HARVESTER_SYSTEM},
        "spec": {"backoffLimit": 2, "template": {"spec": pod}} | spec,
    }


class UpgradeScript:
    """Upgrades a cluster; a failure raises TimeoutError."""

    def __init__(self, client: Client, *, plan: str = "demo", iso_url: str, release: Any) -> None:
        self._client = client
        self._plan = plan
        self._iso_url = iso_url
        self._release = release
        #: Node and hook of each acknowledgement, in order.
        self.acknowledged: list[tuple[str, str]] = []

    async def run(self) -> None:
        """Upgrade a cluster of several nodes."""
        await self.prepare()
        await self.upgrade_nodes()
        await self.run_plan("image-cleanup", ["sh", "clean"], concurrency=1)

    async def prepare(self) -> None:
        """Run the steps before the node upgrade."""
        await self.import_image()
        await self.start_repository()
        await self.run_plan("image-preload", ["upgrade_node.sh", "prepare"])
        await self.run_job("cluster-upgrade", ["upgrade_manifests.sh"])

    async def import_image(self) -> None:
        """Import the ISO."""
        name = f"{self._plan}-iso"
        await self._client.create(VIRTUAL_MACHINE_IMAGES, image(name, self._iso_url))
        await eventually(lambda: self._has(VIRTUAL_MACHINE_IMAGES, name, "Imported"))

    async def start_repository(self, *, replicas: int = 2) -> None:
        """Create Deployment and Service, and wait until they are available."""
        for resource, obj in repository(self._plan, f"{self._plan}-iso", replicas=replicas):
            await self._client.create(resource, obj)

        async def available() -> bool:
            found = await self._client.get(DEPLOYMENTS, f"{self._plan}-repo", namespace=HARVESTER_SYSTEM)
            return bool(objects.status(found).get("availableReplicas") == replicas)

        await eventually(available)

    async def run_plan(self, component: str, args: list[str], *, concurrency: int = 3) -> None:
        """Run a Plan to its end."""
        name = f"{self._plan}-{component}"
        await self._client.create(SUC_PLANS, suc_plan(name, self._plan, args=args, concurrency=concurrency))
        await eventually(lambda: self._has(SUC_PLANS, name, "Complete", namespace=CATTLE_SYSTEM))

    async def run_job(self, name: str, command: list[str], *, node: str = "") -> None:
        """Run a Job to its end."""
        full = f"{self._plan}-{name}"
        await self._client.create(JOBS, job(full, self._plan, command=command, node=node))
        await eventually(lambda: self._has(JOBS, full, "Complete"))

    async def upgrade_nodes(self) -> None:
        """Start the node upgrade and acknowledge hooks until every node runs the new release."""
        await self.ask_rancher()
        await eventually(self._nodes_are_done, seconds=36000)

    async def ask_rancher(self) -> None:
        """Start the node upgrade by a patch of the Rancher cluster."""
        cluster = await self._client.get(PROVISIONING_CLUSTERS, "local", namespace=FLEET_LOCAL)
        options = {
            "enabled": True,
            "force": True,
            "ignoreDaemonSets": True,
            "deleteEmptyDirData": True,
            "preDrainHooks": [{"annotation": PRE_HOOK}],
            "postDrainHooks": [{"annotation": POST_HOOK}],
        }
        strategy = {
            "controlPlaneConcurrency": "1",
            "workerConcurrency": "1",
            "controlPlaneDrainOptions": options,
            "workerDrainOptions": options,
        }
        generation = objects.spec(cluster)["rkeConfig"]["provisionGeneration"] + 1
        rke = {"provisionGeneration": generation, "upgradeStrategy": strategy}
        body = {"spec": {"kubernetesVersion": self._release.kubernetes, "rkeConfig": rke}}
        await self._client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(body), namespace=FLEET_LOCAL)

    async def _nodes_are_done(self) -> bool:
        busy = False
        for secret in (await self._client.list(SECRETS, namespace=FLEET_LOCAL)).items:
            busy = await self._acknowledge(secret) or busy
        nodes = (await self._client.list(NODES)).items
        return not busy and all(self._is_new(node) for node in nodes)

    async def _acknowledge(self, secret: Object) -> bool:
        """Acknowledge a pending hook; return True while the machine is drained."""
        annotations = objects.annotations_of(secret)
        for drain, hook, work in (
            ("rke.cattle.io/post-drain", POST_HOOK, "post-drain"),
            ("rke.cattle.io/pre-drain", PRE_HOOK, "pre-drain"),
        ):
            text = annotations.get(drain)
            if text and annotations.get(hook) != text:
                node = await self._node_of(secret)
                self.acknowledged.append((node, work))
                await self.run_job(f"{work}-{node}", ["upgrade_node.sh", work], node=node)
                if work == "post-drain":
                    await eventually(partial(self._is_back, node))
                body = {"metadata": {"annotations": {hook: text}}}
                await self._client.patch(SECRETS, objects.name(secret), MergePatch(body), namespace=FLEET_LOCAL)
                return True
        return any(key in annotations for key in ("rke.cattle.io/drain-options", "rke.cattle.io/post-drain"))

    async def _node_of(self, secret: Object) -> str:
        machine = await self._client.get(MACHINES, objects.labels(secret)[RKE_MACHINE_NAME], namespace=FLEET_LOCAL)
        return str(objects.status(machine)["nodeRef"]["name"])

    async def _is_back(self, name: str) -> bool:
        return self._is_new(await self._client.get(NODES, name))

    def _is_new(self, node: Object) -> bool:
        new = objects.status(node)["nodeInfo"]["osImage"] == self._release.os_image
        return bool(new and objects.is_condition_true(node, "Ready"))

    async def _has(self, resource: Any, name: str, condition: str, *, namespace: str = HARVESTER_SYSTEM) -> bool:
        return objects.is_condition_true(await self._client.get(resource, name, namespace=namespace), condition)
