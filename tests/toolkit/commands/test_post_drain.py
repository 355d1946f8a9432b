from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.managers.sweep import Sweep
from tests.support.toolkit.os_upgrade import (
    AGENT_ARCHIVE,
    NEW_OS,
    RKE2_ARCHIVE,
    ROOTFS,
    USER_ARCHIVE,
    boot,
    elementals,
    expected_elementals,
    is_clean,
    is_upgraded,
    keeps_old_os,
    new_host,
    os_world,
    set_node,
)
from tests.support.toolkit.toolkit import NODE, POD, ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import count_points, run_killed
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_JOB_TYPE, LABEL_NODE, JobType
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, PODS
from upgrade_manager.toolkit.host.host_paths import OS_WORK
from upgrade_manager.toolkit.iso.checksums import Checksums
from upgrade_manager.toolkit.run.errors import StepFailed, StepTimedOut, WrongChecksum

COMMAND = "node post-drain"
_EARLIER = "demo-node-upgrade-post-drain-node-0-aaaaa"


async def test_golden_run(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        listing = await transcript(world, COMMAND)
        assert listing == golden("post-drain", listing)
        assert is_upgraded(world)
        assert world.programs.state.reboot_after == POD


@pytest.mark.full
async def test_killed_at_every_effect_the_next_run_ends_the_same(tmp_path: Path, sweep: Sweep) -> None:
    async with os_world(tmp_path) as world:
        points = await count_points(world, COMMAND)
        assert points > 40
        for at in sweep.points(0, points - 1, stride=1):
            await new_host(world, tmp_path / str(at))
            where = await run_killed(world, COMMAND, at=at)
            await world.run(COMMAND)
            assert where
            assert is_upgraded(world), where
            assert elementals(world) == expected_elementals(where), where
            assert len(world.programs.state.units) == 1, where
            assert not objects.spec(await world.client.get(NODES, NODE)).get("taints"), where


async def test_archives_that_are_read_again_are_kept(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await world.run(COMMAND)
        assert [world.tree.exists(path) for path in (RKE2_ARCHIVE, AGENT_ARCHIVE, USER_ARCHIVE)] == [False, True, True]


async def test_os_of_the_release_is_not_installed_again(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        boot(world, NEW_OS)
        world.tree.write(f"{OS_WORK}/rootfs-Harvester-v1.7.9.squashfs", "of another upgrade")
        await world.run(COMMAND)
        assert (elementals(world), world.programs.state.units) == (0, [])
        assert is_clean(world)
        assert not world.tree.exists(RKE2_ARCHIVE)


async def test_kubelet_that_stays_old_times_out_before_any_change(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await set_node(world, kubelet="v1.34.3+rke2r1")
        text = (
            "wait-for-kubelet: not done after 60 min: node node-0: it runs Kubernetes v1.34.3+rke2r1 instead of "
            "v1.35.2+rke2r1. Show the agent's log on node node-0: journalctl -u rancher-system-agent --no-pager -n 100"
        )
        with pytest.raises(StepTimedOut) as error:
            await world.run(COMMAND)
        assert str(error.value) == text
        assert world.programs.state.calls == []
        assert world.tree.exists(RKE2_ARCHIVE)


async def test_repository_that_stays_away_times_out(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.iso.errors = [Transient("the upgrade repository returned HTTP 503")] * 1000
        with pytest.raises(StepTimedOut, match="wait-for-repository: not done after 30 min: the upgrade repository"):
            await world.run(COMMAND)


async def _create_pod(world: ToolkitWorld, name: str, *, node: str = NODE) -> None:
    labels = {LABEL_NODE: node, LABEL_JOB_TYPE: JobType.POST_DRAIN.value}
    spec = {"nodeName": node, "containers": [{"name": "apply", "image": "toolkit"}]}
    pod = {"metadata": {"name": name, "namespace": HARVESTER_SYSTEM, "labels": labels}, "spec": spec}
    await world.client.create(PODS, pod, namespace=HARVESTER_SYSTEM)
    await _set_phase(world, name, "Running")


async def _set_phase(world: ToolkitWorld, name: str, phase: str) -> None:
    patch = MergePatch({"status": {"phase": phase}})
    await world.client.patch(PODS, name, patch, namespace=HARVESTER_SYSTEM, subresource="status")


async def test_earlier_pod_that_still_runs_is_awaited(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await _create_pod(world, _EARLIER)
        await asyncio.sleep(5)
        await _create_pod(world, POD)
        await _create_pod(world, "demo-node-upgrade-post-drain-node-1-bbbbb", node="node-1")
        run = asyncio.create_task(world.run(COMMAND))
        await asyncio.sleep(600)
        assert world.programs.state.calls == []
        assert world.steps.waits[-1] == (
            f"wait-for-earlier-attempts: Pod harvester-system/{_EARLIER} still upgrades node node-0"
        )
        await _set_phase(world, _EARLIER, "Failed")
        await run
        assert is_upgraded(world)


async def test_later_pod_is_not_awaited(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await _create_pod(world, POD)
        await asyncio.sleep(5)
        await _create_pod(world, "demo-node-upgrade-post-drain-node-0-zzzzz")
        await world.run(COMMAND)
        assert is_upgraded(world)


async def test_second_attempt_gets_a_separate_unit(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await world.run(COMMAND, pod=_EARLIER)
        await world.run(COMMAND)
        assert elementals(world) == 1
        assert world.programs.state.units == [
            f"harvester-upgrade-reboot-{_EARLIER}.service",
            f"harvester-upgrade-reboot-{POD}.service",
        ]


async def test_failed_step_is_reported_in_one_line(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.failing = {"systemd-run": "Failed to connect to bus: No such file or directory"}
        with pytest.raises(StepFailed) as error:
            await world.run(COMMAND)
        assert str(error.value) == (
            "arrange-reboot: systemd-run returned 1: Failed to connect to bus: No such file or directory"
        )
        assert world.programs.state.units == []


@pytest.mark.rule(
    "nodes: a root file system that was changed on its way is not installed, and the node keeps its system"
)
@pytest.mark.parametrize("changed", [b'PRETTY_NAME="Harvester v1.8.0"\nbackdoor\n', ROOTFS.replace("8", "9").encode()])
async def test_changed_root_file_system_is_never_mounted(tmp_path: Path, changed: bytes) -> None:
    async with os_world(tmp_path) as world:
        good = dict(world.iso.files)
        world.checksums = Checksums({path: sha256(content).hexdigest() for path, content in good.items()})
        world.iso.files["/rootfs.squashfs"] = changed
        with pytest.raises(WrongChecksum) as refused:
            await world.run(COMMAND)
        expected, found = (sha256(content).hexdigest() for content in (good["/rootfs.squashfs"], changed))
        message = f"download-os: /rootfs.squashfs has the SHA-256 {found}, but the one on the ISO has {expected}."
        assert str(refused.value).startswith(message)
        assert keeps_old_os(world)
        assert elementals(world) == 0
        assert not any(call.startswith("mount -t squashfs") for call in world.programs.state.calls)
        assert not list(world.tree.root.rglob("*.squashfs*"))
        world.iso.files = good
        await world.run(COMMAND)
        assert is_upgraded(world)
