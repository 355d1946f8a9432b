"""The upgrade repository is deleted or scaled down by others, while nodes read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, REAL_LOOK, REFUSAL, UpgradeRun, condition, started
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, ENDPOINT_SLICES, NODES, PODS, SERVICES, VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.cluster.simulate import Simulate
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

    Disturb = Callable[[UpgradeRun], Awaitable[None]]

pytestmark = pytest.mark.full

NAME, NAMESPACE = "upgrade-repo", "harvester-system"
SLICES = "kubernetes.io/service-name=upgrade-repo"
REPOSITORY_PODS = "management.harvesterhci.io/upgrade-component=repo"


async def scale_to_zero(stage: UpgradeRun) -> None:
    await stage.client.patch(DEPLOYMENTS, NAME, MergePatch({"spec": {"replicas": 0}}), namespace=NAMESPACE)


async def delete_deployment(stage: UpgradeRun) -> None:
    await stage.client.delete(DEPLOYMENTS, NAME, namespace=NAMESPACE)


async def delete_service(stage: UpgradeRun) -> None:
    await stage.client.delete(SERVICES, NAME, namespace=NAMESPACE)


async def delete_image(stage: UpgradeRun) -> None:
    await stage.client.delete(VIRTUAL_MACHINE_IMAGES, "upgrade-iso", namespace=NAMESPACE)


async def orphan_deployment(stage: UpgradeRun) -> None:
    await orphan(stage, DEPLOYMENTS, PODS, REPOSITORY_PODS)


async def orphan_service(stage: UpgradeRun) -> None:
    await orphan(stage, SERVICES, ENDPOINT_SLICES, SLICES)


async def orphan(stage: UpgradeRun, resource: Resource, dependents: Resource, selector: str) -> None:
    """Delete an object as `kubectl delete --cascade=orphan` does; the embedded API server refuses that policy."""
    if stage.simulation.backend.has_controllers:
        await stage.client.delete(resource, NAME, namespace=NAMESPACE, propagation="Orphan")
        return
    for one in (await stage.client.list(dependents, namespace=NAMESPACE, label_selector=selector)).items:
        patch = MergePatch({"metadata": {"ownerReferences": None}})
        await stage.client.patch(dependents, objects.name(one), patch, namespace=NAMESPACE)
    await stage.client.delete(resource, NAME, namespace=NAMESPACE)


async def until_served(stage: UpgradeRun) -> None:
    """Wait until both replicas are available and the Service has an endpoint. Raises TimeoutError."""

    async def is_served() -> bool:
        deployments = (await stage.client.list(DEPLOYMENTS, namespace=NAMESPACE)).items
        counts = [objects.status(one).get("availableReplicas") for one in deployments if objects.name(one) == NAME]
        services = (await stage.client.list(SERVICES, namespace=NAMESPACE)).items
        slices = (await stage.client.list(ENDPOINT_SLICES, namespace=NAMESPACE, label_selector=SLICES)).items
        return counts == [2] and NAME in map(objects.name, services) and any(one.get("endpoints") for one in slices)

    await eventually(is_served, seconds=60, pause=REAL_LOOK)


@pytest.mark.rule("pipeline: the repository is recreated and scaled back up to ImageCleanup")
@pytest.mark.parametrize(
    ("phase", "disturb"),
    [("ImagePreloading", delete_deployment), ("PostDraining", scale_to_zero), ("CleaningUp", delete_service)],
)
@pytest.mark.thin
async def test_repository_is_restored(simulate: Simulate, phase: str, disturb: Disturb) -> None:
    await assert_restored(simulate, phase, disturb)


async def assert_restored(simulate: Simulate, phase: str, disturb: Disturb) -> None:
    """Disturb the repository in that phase, and check that it is restored without an error."""
    async with simulate() as simulation, started(simulation) as stage:
        await stage.reach(phase)
        await disturb(stage)
        await until_served(stage)
        await stage.succeed()
        assert await stage.events("ReconcileError") == []


@pytest.mark.rule("pipeline: the repository is recreated and scaled back up to ImageCleanup")
async def test_repository_is_restored_between_two_phases(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("PostDraining", node="node-2")
        allow = stage.refuse("patch", "addons.*")
        await stage.until_recorded("NodeUpgraded")
        await delete_deployment(stage)
        await until_served(stage)
        allow()
        await stage.succeed()


@pytest.mark.rule("pipeline: the repository is recreated and scaled back up to ImageCleanup")
@pytest.mark.parametrize(
    ("phase", "disturb"), [("ImagePreloading", orphan_deployment), ("PostDraining", orphan_service)]
)
@pytest.mark.servers
@pytest.mark.thin
async def test_orphaning_deletion_is_repaired(simulate: Simulate, phase: str, disturb: Disturb) -> None:
    await assert_restored(simulate, phase, disturb)


@pytest.mark.rule("pipeline: the ISO's image is ensured like the repository")
@pytest.mark.parametrize("phase", ["RepoCreating", "PostDraining"])
@pytest.mark.servers
@pytest.mark.thin
@pytest.mark.real_full
async def test_deleted_image_is_imported_again(simulate: Simulate, phase: str) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.reach(phase)
        before = await stage.client.get(VIRTUAL_MACHINE_IMAGES, "upgrade-iso", namespace=NAMESPACE)
        await delete_image(stage)

        async def is_new() -> bool:
            found = (await stage.client.list(VIRTUAL_MACHINE_IMAGES, namespace=NAMESPACE)).items
            named = [one for one in found if objects.name(one) == "upgrade-iso"]
            return [objects.uid(one) != objects.uid(before) for one in named] == [True]

        await eventually(is_new, seconds=60, pause=REAL_LOOK)
        await stage.succeed()


@pytest.mark.rule("pipeline: an adopted image that is deleted is named")
async def test_deleted_image_of_the_user_is_named(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation, BY_IMAGE) as stage:
        await stage.until_node("PostDraining")
        image = await stage.client.get(VIRTUAL_MACHINE_IMAGES, BY_IMAGE["image"], namespace=NAMESPACE)
        await stage.client.delete(VIRTUAL_MACHINE_IMAGES, BY_IMAGE["image"], namespace=NAMESPACE)
        plan = await stage.until_plan(lambda plan: condition(plan, "Stalled")[0] == "True")
        assert condition(plan, "Stalled")[2].startswith(f"VirtualMachineImage {NAMESPACE}/{BY_IMAGE['image']}: it does")
        metadata = {key: objects.metadata(image)[key] for key in ("name", "namespace")}
        await stage.client.create(VIRTUAL_MACHINE_IMAGES, {**image, "metadata": metadata})
        await stage.succeed()


@pytest.mark.rule("pipeline: a refused write of the repository does not stop a node that is back")
async def test_refused_repository_does_not_stop_a_node_that_is_back(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("WaitingReboot", node="node-2")
        allow = stage.refuse("create", "deployments.apps")
        await delete_deployment(stage)
        await stage.until_node("PostDrained", node="node-2")
        node = await stage.client.get(NODES, "node-2")

        async def is_schedulable() -> bool:
            return not objects.is_true(await stage.client.get(NODES, "node-2"), "spec", "unschedulable")

        await eventually(is_schedulable, seconds=60, pause=REAL_LOOK)
        assert objects.text(node, "status", "nodeInfo", "osImage") == f"Harvester {BY_VERSION['version']}"
        plan = await stage.until_plan(lambda plan: "WriteRefused" in reasons(plan))
        assert REFUSAL in condition(plan, "Degraded")[2]
        allow()
        await stage.succeed()
        cleared = [event["message"] for event in await stage.events("BlockerCleared")]
        assert len([message for message in cleared if "WriteRefused" in message]) == 1


def reasons(plan: Object) -> list[str]:
    return [entry["reason"] for entry in objects.items(plan, "status", "blockers")]
