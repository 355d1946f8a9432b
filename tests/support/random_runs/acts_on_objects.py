"""Acts of users and other controllers on the objects of a random upgrade."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.cluster.node_order import RESUMED_BY_USER
from tests.support.random_runs.undoing import undone
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_PLAN, Component
from upgrade_manager.api.names import component_name, repo_service_name, restore_vm_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    SERVICES,
    VERSIONS,
    VIRTUAL_MACHINE_IMAGES,
)

if TYPE_CHECKING:
    from tests.support.managers.upgrade import UpgradeRun
    from tests.support.random_runs.interference import Interference
    from upgrade_manager.kube.objects import Object


async def version_deleted(stage: UpgradeRun, act: Interference) -> None:
    """Delete the Version; Harvester's sync creates it again."""
    version = objects.spec(await stage.plan()).get("version")
    if version:
        found = await stage.client.get(VERSIONS, version, namespace=HARVESTER_SYSTEM)
        await stage.client.delete(VERSIONS, version, namespace=HARVESTER_SYSTEM)
        await asyncio.sleep(act.lasts)
        metadata = {"name": version, "namespace": HARVESTER_SYSTEM}
        await stage.client.create(VERSIONS, {**found, "metadata": metadata}, namespace=HARVESTER_SYSTEM)


async def repository_scaled_down(stage: UpgradeRun, _: Interference) -> None:
    name = component_name(stage.name, Component.REPO)
    await stage.client.patch(DEPLOYMENTS, name, MergePatch({"spec": {"replicas": 0}}), namespace=HARVESTER_SYSTEM)


async def repository_deleted(stage: UpgradeRun, _: Interference | None = None) -> None:
    await stage.client.delete(DEPLOYMENTS, component_name(stage.name, Component.REPO), namespace=HARVESTER_SYSTEM)


async def service_deleted(stage: UpgradeRun, _: Interference | None = None) -> None:
    await stage.client.delete(SERVICES, repo_service_name(stage.name), namespace=HARVESTER_SYSTEM)


async def list_deleted(stage: UpgradeRun, _: Interference) -> None:
    """Delete the list of VMs to restore."""
    await stage.client.delete(CONFIG_MAPS, restore_vm_config_map(stage.name), namespace=HARVESTER_SYSTEM)


async def job_deleted(stage: UpgradeRun, act: Interference) -> None:
    """Delete a Job that is suspended or complete, once there is one."""
    for _ in range(max(1, int(act.lasts))):
        jobs = (await stage.client.list(JOBS, namespace=HARVESTER_SYSTEM)).items
        idle = [job for job in jobs if objects.labels(job).get(LABEL_PLAN) == stage.name and _is_idle(job)]
        if idle:
            await stage.client.delete(JOBS, objects.name(idle[-1]), namespace=HARVESTER_SYSTEM)
            return
        await asyncio.sleep(1)


async def job_suspended(stage: UpgradeRun, act: Interference) -> None:
    """Suspend a Job that runs, once there is one, and resume it later."""
    for _ in range(max(1, int(act.lasts))):
        jobs = (await stage.client.list(JOBS, namespace=HARVESTER_SYSTEM)).items
        running = [job for job in jobs if objects.labels(job).get(LABEL_PLAN) == stage.name and _is_running(job)]
        if running:
            await _suspend_for(stage, objects.name(running[-1]), act.lasts)
            return
        await asyncio.sleep(1)


async def _suspend_for(stage: UpgradeRun, job: str, seconds: float) -> None:
    async with undone(lambda: _suspend(stage, job, suspend=False)):
        await _suspend(stage, job, suspend=True)
        await asyncio.sleep(seconds)


async def _suspend(stage: UpgradeRun, job: str, *, suspend: bool) -> None:
    mark = {"annotations": {RESUMED_BY_USER: None if suspend else "true"}}
    patch = MergePatch({"metadata": mark, "spec": {"suspend": suspend}})
    await stage.client.patch(JOBS, job, patch, namespace=HARVESTER_SYSTEM)


async def image_deleted(stage: UpgradeRun, _: Interference) -> None:
    """Delete the image that the plan has created from the Version's ISO."""
    images = (await stage.client.list(VIRTUAL_MACHINE_IMAGES, namespace=HARVESTER_SYSTEM)).items
    for image in images:
        if objects.labels(image).get(LABEL_PLAN) == stage.name:
            await stage.client.delete(VIRTUAL_MACHINE_IMAGES, objects.name(image), namespace=HARVESTER_SYSTEM)


def _is_running(job: Object) -> bool:
    return bool(objects.status(job).get("active")) and not objects.spec(job).get("suspend")


def _is_idle(job: Object) -> bool:
    return bool(objects.spec(job).get("suspend")) or objects.is_condition_true(job, "Complete")
