from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hack.cluster.seed_services import instance_manager
from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services, services_world
from tests.support.toolkit.toolkit import ToolkitWorld
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, SETTINGS
from upgrade_manager.toolkit.charts.cluster_resources import DAEMON_SETS, INSTANCE_MANAGERS
from upgrade_manager.toolkit.charts.instance_managers import instance_managers_missing
from upgrade_manager.toolkit.run.errors import StepFailed

IMAGE = "longhornio/longhorn-instance-manager:v1.10.0"
SHOW = "Show them: kubectl get instancemanagers.longhorn.io -n longhorn-system -o wide"
NAME = "instance-manager-v1-10-0-node-1"


def about(problem: str, *, engine: str = "v1", node: str = "node-1") -> str:
    return f"node {node} {problem} of data engine {engine} with image {IMAGE}. {SHOW}"


NONE = about("has no instance manager instead of one")
NO_IMAGE = "DaemonSet longhorn-system/longhorn-manager names no image by --instance-manager-image"


async def change(world: ToolkitWorld, *, subresource: str = "", **body: Any) -> None:
    patch = MergePatch(body)
    await world.client.patch(INSTANCE_MANAGERS, NAME, patch, namespace="longhorn-system", subresource=subresource)


@pytest.mark.parametrize(
    ("spec", "state", "words"),
    [
        pytest.param({}, "running", "", id="runs"),
        pytest.param(
            {}, "starting", about("has an instance manager in state starting instead of running"), id="starts"
        ),
        pytest.param({}, None, about("has an instance manager in state unknown instead of running"), id="new"),
        pytest.param({"image": "old"}, "running", about("has no instance manager instead of one"), id="old-image"),
        pytest.param({"type": "engine"}, "running", about("has no instance manager instead of one"), id="other-type"),
        pytest.param(
            {"dataEngine": "v2"}, "running", about("has no instance manager instead of one"), id="other-engine"
        ),
        pytest.param(
            {"nodeID": "node-0"}, "running", about("has 2 instance managers instead of one", node="node-0"), id="two"
        ),
    ],
)
async def test_instance_manager_of_each_node(tmp_path: Path, spec: Any, state: str | None, words: str) -> None:
    async with services_world(tmp_path, nodes={"count": 2}) as world:
        await change(world, spec=spec)
        await change(world, status={"currentState": state}, subresource="status")
        assert await instance_managers_missing(world.context()) == words


async def test_witness_and_single_node_have_none_to_wait_for(tmp_path: Path) -> None:
    async with services_world(tmp_path / "witness", nodes={"count": 3, "witness": (2,)}) as world:
        assert await instance_managers_missing(world.context()) == ""
    async with services_world(tmp_path / "one", nodes={"count": 1}) as world:
        listed = (await world.client.list(INSTANCE_MANAGERS)).items
        assert len(listed) == 1
        await world.client.delete(INSTANCE_MANAGERS, objects.name(listed[0]), namespace="longhorn-system")
        assert await instance_managers_missing(world.context()) == ""


@pytest.mark.parametrize("field", ["value", "default"])
async def test_second_data_engine_has_its_own(tmp_path: Path, field: str) -> None:
    async with services_world(tmp_path, nodes={"count": 3}) as world:
        disabled = MergePatch({"metadata": {"labels": {"node.longhorn.io/disable-v2-data-engine": "true"}}})
        await world.client.patch(NODES, "node-2", disabled)
        metadata = {"name": "longhorn-v2-data-engine-enabled"}
        await world.client.create(SETTINGS, SETTINGS.with_type_meta({"metadata": metadata, field: "true"}))
        wanted = about("has no instance manager instead of one", engine="v2", node="node-0")
        assert await instance_managers_missing(world.context()) == wanted
        for node in ("node-0", "node-1"):
            manager = instance_manager(node, "v1.10.0")
            manager["metadata"]["name"] += "-v2"
            manager["spec"]["dataEngine"] = "v2"
            created = await world.client.create(INSTANCE_MANAGERS, manager)
            running = MergePatch({"status": {"currentState": "running"}})
            name = objects.name(created)
            await world.client.patch(
                INSTANCE_MANAGERS, name, running, namespace="longhorn-system", subresource="status"
            )
        assert await instance_managers_missing(world.context()) == ""


@pytest.mark.parametrize(
    ("container", "words"),
    [
        pytest.param({"command": ["x", f"--instance-manager-image={IMAGE}"]}, "", id="one-word"),
        pytest.param({"args": ["--instance-manager-image", IMAGE]}, "", id="argument"),
        pytest.param(
            {"command": ["longhorn-manager", "--instance-manager-image"]},
            NO_IMAGE,
            id="none",
        ),
        pytest.param(
            {}, "DaemonSet longhorn-system/longhorn-manager names no image by --instance-manager-image", id="no"
        ),
    ],
)
async def test_image_is_that_of_longhorns_manager(tmp_path: Path, container: Any, words: str) -> None:
    async with services_world(tmp_path, nodes={"count": 2}) as world:
        containers = [{"name": "longhorn-manager", "image": "longhorn-manager:v1", **container}]
        patch = MergePatch({"spec": {"template": {"spec": {"containers": containers}}}})
        await world.client.patch(DAEMON_SETS, "longhorn-manager", patch, namespace="longhorn-system")
        assert await instance_managers_missing(world.context()) == words


@pytest.mark.full
async def test_upgrade_waits_for_each_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster_upgrade(tmp_path, services(nodes={"count": 3})) as upgrade:
        monkeypatch.setattr("hack.actors.harvester.Harvester._start_instance_managers", _start_none)
        with pytest.raises(StepFailed, match=r"^wait-for-instance-managers: not done after 60 min: node node-0 has no"):
            await upgrade.run()


async def _start_none(*_: Callable[..., Any]) -> None:
    """Start no instance managers."""
