from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.managers.sweep import Sweep
from tests.support.toolkit.os_upgrade import (
    NEW_OS,
    boot,
    elementals,
    expected_elementals,
    is_upgraded,
    rename,
    single_node_world,
)
from tests.support.toolkit.toolkit import NODE, POD, ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import count_points, run_killed
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.api.keys import ANNOTATION_PRE_HOOK, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, PROVISIONING_CLUSTERS, VIRTUAL_MACHINE_INSTANCES
from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, PASSIVE_IMAGE
from upgrade_manager.toolkit.run.errors import OutOfSpace, StepFailed, StepTimedOut

COMMAND = "node single-node-upgrade"
NEW_KUBERNETES = "v1.35.2+rke2r1"
_OUTAGE = 600.0


async def _kubelet(world: ToolkitWorld) -> str:
    node = await world.client.get(NODES, NODE)
    version: str = objects.status(node)["nodeInfo"]["kubeletVersion"]
    return version


async def _cluster(world: ToolkitWorld) -> dict[str, Any]:
    cluster = await world.client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    return objects.spec(cluster)


async def _set_cluster(world: ToolkitWorld, spec: dict[str, Any]) -> None:
    patch = MergePatch({"spec": spec})
    await world.client.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)


async def _vms(world: ToolkitWorld) -> int:
    found = (await world.client.list(VIRTUAL_MACHINE_INSTANCES)).items
    return sum(objects.status(one).get("phase") not in {"Succeeded", "Failed"} for one in found)


async def test_golden_run(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        listing = await transcript(world, COMMAND)
        assert listing == golden("single-node-upgrade", listing)
        assert is_upgraded(world)
        assert (await _kubelet(world), await _vms(world)) == (NEW_KUBERNETES, 0)
        assert world.programs.state.reboot_after == POD


async def test_killed_at_every_effect_the_next_run_ends_the_same(tmp_path: Path, sweep: Sweep) -> None:
    async with single_node_world(_folder(tmp_path, "whole")) as world:
        points = await count_points(world, COMMAND)
    for at in sweep.points(0, points - 1):
        async with single_node_world(_folder(tmp_path, str(at))) as world:
            where = await run_killed(world, COMMAND, at=at)
            await world.run(COMMAND)
            assert where
            assert is_upgraded(world), where
            assert (await _kubelet(world), await _vms(world)) == (NEW_KUBERNETES, 0), where
            assert (elementals(world), len(world.programs.state.units)) == (expected_elementals(where), 1), where


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


async def test_other_settings_of_the_cluster_stay(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        await _set_cluster(world, {"rkeConfig": {"registries": {"mirrors": {"docker.io": {"endpoint": ["r"]}}}}})
        before = await _cluster(world)
        await world.run(COMMAND)
        assert await _cluster(world) == {**before, "kubernetesVersion": NEW_KUBERNETES}


async def test_drain_hooks_are_refused_before_vms_are_stopped(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        options = {"controlPlaneDrainOptions": {"preDrainHooks": [{"annotation": ANNOTATION_PRE_HOOK}]}}
        await _set_cluster(world, {"rkeConfig": {"upgradeStrategy": options}})
        with pytest.raises(StepFailed) as error:
            await world.run(COMMAND)
        assert str(error.value) == (
            "check-drain-hooks: Cluster fleet-local/local has the drain hooks management.harvesterhci.io/pre-hook, for "
            "which Rancher would wait on a single node. Remove them: kubectl patch -n fleet-local "
            'clusters.provisioning.cattle.io local --type=merge -p \'{"spec":{"rkeConfig":{"upgradeStrategy":'
            '{"controlPlaneDrainOptions":{"preDrainHooks":[]}}}}}\''
        )
        assert await _vms(world) == 2


async def test_full_state_partition_is_refused_before_vms_are_stopped(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        world.programs.state.free_mib = 100
        with pytest.raises(OutOfSpace, match=r"^check-os: the new operating system needs 5086 MiB"):
            await world.run(COMMAND)
        assert (await _vms(world), await _kubelet(world)) == (2, "v1.34.3+rke2r1")


async def test_replaced_image_is_refused_before_vms_are_stopped(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        rename(world, ACTIVE_IMAGE, PASSIVE_IMAGE)
        world.tree.write(ACTIVE_IMAGE, "of an operator\n")
        with pytest.raises(StepFailed, match=r"^check-os: another program has replaced .*active\.img"):
            await world.run(COMMAND)
        assert (await _vms(world), await _kubelet(world)) == (2, "v1.34.3+rke2r1")


class _AwayAfterPatch:
    """A client whose API server is away for a while after the Kubernetes version was set."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._away_until = 0.0
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        async def request(resource: Any, *arguments: Any, **options: Any) -> Any:
            if loop_time() < self._away_until:
                self.failed += 1
                raise Transient("API server: connection refused")
            result = await method(resource, *arguments, **options)
            if name == "patch" and resource is PROVISIONING_CLUSTERS:
                self._away_until = loop_time() + _OUTAGE
            return result

        return request


async def test_api_server_is_away_while_kubernetes_restarts(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        client = _AwayAfterPatch(world.client)
        await world.run(COMMAND, client=cast("Client", client))
        assert client.failed > 10
        assert is_upgraded(world)


async def test_kubernetes_that_rancher_does_not_upgrade_times_out(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        world.simulation.freezer.freeze("Planner")
        with pytest.raises(StepTimedOut) as error:
            await world.run(COMMAND, poll=600.0)
        assert str(error.value).startswith(
            "wait-for-kubelet: not done after 120 min: node node-0: it runs Kubernetes v1.34.3+rke2r1 instead of "
            f"{NEW_KUBERNETES}"
        )
        assert elementals(world) == 0


async def test_upgraded_node_keeps_its_vms(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        await _set_cluster(world, {"kubernetesVersion": NEW_KUBERNETES})
        await asyncio.sleep(600)
        assert await _kubelet(world) == NEW_KUBERNETES
        boot(world, NEW_OS)
        await world.run(COMMAND)
        assert (elementals(world), world.programs.state.units) == (0, [])
        assert await _vms(world) == 2
