"""Foreign objects under the manager's names: never adopted or changed, reported with both owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from tests.support.cluster.simulate import Simulate
from tests.support.managers.upgrade import condition, started
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    SERVICES,
    SUC_PLANS,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)

CONTAINER = {"name": "x", "image": "docker.io/library/busybox:1.36.1"}
LABELS = {"app": "foreign"}
POD = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
#: It never starts, so that it never ends.
JOB = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}
IMAGE = {"displayName": "d", "sourceType": "upload", "backend": "cdi", "retry": 0, "url": "", "checksum": ""}
SUC = {"concurrency": 1, "nodeSelector": {"matchLabels": {"no": "node"}}, "upgrade": {"image": "i"}, "version": "v1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A foreign object under a name of the manager's."""

    resource: Resource
    name: str
    spec: dict[str, Any]
    #: Where the plan stops.
    phase: str
    namespace: str = "harvester-system"


def foreign(
    resource: Resource, name: str, phase: str, spec: dict[str, Any], namespace: str = "harvester-system"
) -> ParameterSet:
    row = Foreign(resource=resource, name=name, phase=phase, spec=spec, namespace=namespace)
    return pytest.param(row, id=f"{resource.kind} {name}")


DEPLOYMENT = {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": POD}
REPOSITORY = Foreign(resource=DEPLOYMENTS, name="upgrade-repo", phase="RepoCreating", spec=DEPLOYMENT)
OBJECTS = [
    foreign(VIRTUAL_MACHINE_IMAGES, "upgrade-iso", "ISODownloading", IMAGE),
    foreign(DEPLOYMENTS, "upgrade-repo", "RepoCreating", DEPLOYMENT),
    foreign(SERVICES, "upgrade-repo", "RepoCreating", {"ports": [{"port": 81}]}),
    foreign(SUC_PLANS, "upgrade-image-preload", "ImagePreloading", SUC, "cattle-system"),
    foreign(JOBS, "upgrade-cluster-upgrade", "ClusterUpgrading", JOB),
    foreign(JOBS, "upgrade-node-upgrade-pre-drain-node-2", "NodeUpgrading", JOB),
    foreign(JOBS, "upgrade-node-upgrade-post-drain-node-0", "NodeUpgrading", JOB),
    foreign(SUC_PLANS, "upgrade-image-cleanup", "CleaningUp", SUC, "cattle-system"),
]


async def place(client: Client, foreign: Foreign) -> tuple[Object, Object]:
    """Create a ConfigMap and the object that it owns."""
    owner = await client.create(CONFIG_MAPS, {"metadata": {"name": "its-owner", "namespace": foreign.namespace}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "its-owner", "uid": objects.uid(owner)}
    owners = [{**reference, "controller": True}]
    metadata = {"name": foreign.name, "namespace": foreign.namespace, "ownerReferences": owners}
    head = {"apiVersion": foreign.resource.api_version, "kind": foreign.resource.kind}
    return owner, await client.create(foreign.resource, {**head, "metadata": metadata, "spec": foreign.spec})


def essence(found: Object) -> Any:
    """Return what the object's creator specified; controllers may change the rest."""
    meta = {key: objects.metadata(found).get(key) for key in ("uid", "labels", "ownerReferences", "finalizers")}
    return meta, objects.spec(found)


@pytest.mark.rule(
    "workloads: an object that another owner controls is never adopted",
    "workloads: an object of another owner makes the plan Degraded with both owners named",
    "workloads: cleanup does not remove an object of another owner",
)
@pytest.mark.parametrize("foreign", OBJECTS)
@pytest.mark.thin
async def test_foreign_object_is_reported_and_kept(simulate: Simulate, foreign: Foreign) -> None:
    async with simulate(scale=0.2) as simulation:
        owner, before = await place(simulation.client(), foreign)
        async with started(simulation) as stage:
            plan = await stage.until_plan(lambda plan: condition(plan, "Degraded")[0] == "True")
            status, reason, message = condition(plan, "Degraded")
            assert (await stage.phase(), status, reason) == (foreign.phase, "True", "ReconcileError")
            assert message.startswith(f"{foreign.resource.kind} {foreign.namespace}/{foreign.name} already exists and ")
            assert f"ConfigMap its-owner (uid {objects.uid(owner)})" in message
            assert f"this plan (uid {objects.uid(plan)})" in message
            await stage.delete()
            found = await stage.client.get(foreign.resource, foreign.name, namespace=foreign.namespace)
        assert essence(found) == essence(before)


@pytest.mark.full
@pytest.mark.rule(
    "api: RepoCreate retries and reports Degraded",
    "pipeline: RepoCreate and MetadataPopulate never fail",
)
async def test_upgrade_goes_on_without_the_foreign_object(simulate: Simulate) -> None:
    async with simulate(scale=0.2) as simulation:
        await place(simulation.client(), REPOSITORY)
        async with started(simulation) as stage:
            plan = await stage.until_plan(lambda plan: condition(plan, "Degraded")[0] == "True")
            assert condition(plan, "Degraded")[1] == "ReconcileError"
            await stage.client.delete(REPOSITORY.resource, REPOSITORY.name, namespace=REPOSITORY.namespace)
            assert condition(await stage.succeed(), "Degraded")[0] == "False"
