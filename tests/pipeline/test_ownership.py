"""Foreign objects under the manager's names: never adopted or changed, reported with both owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.upgrade import BY_VERSION, UpgradeRun, condition
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    SERVICES,
    SUC_PLANS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_IMAGES,
)

if TYPE_CHECKING:
    from tests.support.simulate import Simulate
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

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


OBJECTS = [
    Foreign(resource=VIRTUAL_MACHINE_IMAGES, name="upgrade-iso", spec=IMAGE, phase="ISODownloading"),
    Foreign(
        resource=DEPLOYMENTS,
        name="upgrade-repo",
        spec={"replicas": 0, "selector": {"matchLabels": LABELS}, "template": POD},
        phase="RepoCreating",
    ),
    Foreign(resource=SERVICES, name="upgrade-repo", spec={"ports": [{"port": 81}]}, phase="RepoCreating"),
    Foreign(
        resource=SUC_PLANS,
        name="upgrade-image-preload",
        spec=SUC,
        phase="ImagePreloading",
        namespace="cattle-system",
    ),
    Foreign(resource=JOBS, name="upgrade-cluster-upgrade", spec=JOB, phase="ClusterUpgrading"),
    Foreign(resource=JOBS, name="upgrade-node-upgrade-pre-drain-node-2", spec=JOB, phase="NodeUpgrading"),
    Foreign(resource=JOBS, name="upgrade-node-upgrade-post-drain-node-0", spec=JOB, phase="NodeUpgrading"),
    Foreign(resource=SUC_PLANS, name="upgrade-image-cleanup", spec=SUC, phase="CleaningUp", namespace="cattle-system"),
]


async def place(stage: UpgradeRun, foreign: Foreign) -> tuple[Object, Object]:
    """Create it, owned by a ConfigMap; both."""
    client = stage.simulation.client()
    owner = await client.create(
        CONFIG_MAPS,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "its-owner", "namespace": foreign.namespace},
        },
    )
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "its-owner", "uid": objects.uid(owner)}
    metadata = {
        "name": foreign.name,
        "namespace": foreign.namespace,
        "ownerReferences": [{**reference, "controller": True}],
    }
    body = {
        "apiVersion": foreign.resource.api_version,
        "kind": foreign.resource.kind,
        "metadata": metadata,
        "spec": foreign.spec,
    }
    return owner, await client.create(foreign.resource, body)


def essence(found: Object) -> Any:
    """Return what the object's creator specified; controllers may change the rest."""
    meta = {key: objects.metadata(found).get(key) for key in ("uid", "labels", "ownerReferences", "finalizers")}
    return meta, objects.spec(found)


@pytest.mark.rule(
    "api: RepoCreate retries and reports Degraded",
    "pipeline: RepoCreate and MetadataPopulate never fail",
    "workloads: an object that another owner controls is never adopted",
    "workloads: an object of another owner makes the plan Degraded with both owners named",
)
@pytest.mark.parametrize("foreign", [pytest.param(one, id=f"{one.resource.kind} {one.name}") for one in OBJECTS])
@pytest.mark.thin
async def test_foreign_object_is_reported_with_owners_and_kept(simulate: Simulate, foreign: Foreign) -> None:
    async with simulate(scale=0.2) as simulation:
        client = simulation.client()
        stage = await UpgradeRun.set_up(simulation)
        owner, before = await place(stage, foreign)
        async with stage.life():
            plan = await stage.create_plan(BY_VERSION)
            plan = await stage.until_plan(lambda plan: condition(plan, "Degraded")[0] == "True")
            status, reason, message = condition(plan, "Degraded")
            assert (await stage.phase(), status, reason) == (foreign.phase, "True", "ReconcileError")
            assert message.startswith(f"{foreign.resource.kind} {foreign.namespace}/{foreign.name} already exists and ")
            assert f"ConfigMap its-owner (uid {objects.uid(owner)})" in message
            assert f"this plan (uid {objects.uid(plan)})" in message
            found = await client.get(foreign.resource, foreign.name, namespace=foreign.namespace)
            assert essence(found) == essence(before)
            await client.delete(foreign.resource, foreign.name, namespace=foreign.namespace)
            assert await stage.until_ended() == SUCCEEDED
        assert condition(await stage.plan(), "Degraded")[0] == "False"


@pytest.mark.rule("workloads: cleanup does not remove an object of another owner")
@pytest.mark.parametrize("foreign", [pytest.param(one, id=f"{one.resource.kind} {one.name}") for one in OBJECTS])
@pytest.mark.full
async def test_deletion_keeps_foreign_objects(simulate: Simulate, foreign: Foreign) -> None:
    async with simulate(scale=0.2) as simulation:
        client = simulation.client()
        stage = await UpgradeRun.set_up(simulation)
        _, before = await place(stage, foreign)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until(foreign.phase)
            await client.delete(UPGRADE_PLANS, stage.name)
            assert await stage.until("deleted") == "deleted"
            await stage.settle()
            found = await client.get(foreign.resource, foreign.name, namespace=foreign.namespace)
        assert essence(found) == essence(before)
