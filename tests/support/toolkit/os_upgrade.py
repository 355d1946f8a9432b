"""A node whose Kubernetes is upgraded and whose operating system is not, for the commands that change that."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import yaml

from hack import scenario as scenarios
from hack.host import state_partition, tree
from hack.host.programs import SimulatedPrograms
from tests.support.toolkit.toolkit import NODE, toolkit_world
from upgrade_manager.api.keys import TAINT_KUBEVIRT_DRAIN
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, OS_WORK, PASSIVE_IMAGE, RKE2_IMAGES, STATE_PARTITION
from upgrade_manager.toolkit.host.host_tree import HostTree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.toolkit.toolkit import ToolkitWorld

OLD_OS, NEW_OS = "Harvester v1.7.1", "Harvester v1.8.0"
KUBERNETES = "v1.35.2-rc3+rke2r1"
#: Version that the kubelet of that release candidate reports.
KUBELET = "v1.35.2+rke2r1"
ROOTFS = f'PRETTY_NAME="{NEW_OS}"\n'
RUNNING = "the running operating system\n"
AGENT_ARCHIVE = "/var/lib/rancher/agent/images/agent.tar.zst"
RKE2_ARCHIVE = f"{RKE2_IMAGES}/rke2.tar.zst"
USER_ARCHIVE = f"{RKE2_IMAGES}/custom.tar.zst"


def os_iso(*, kubernetes: str = KUBERNETES, os: str = NEW_OS, files: str = "") -> dict[str, bytes]:
    """Return the files of an ISO that these commands read; its root file system has these files, a path a line."""
    release = {"harvester": "v1.8.0", "os": os, "kubernetes": kubernetes, "rancher": "v2.14.0"}
    images = {
        group: [{"list": f"/{group}/{group}.txt", "archive": f"/{group}/{group}.tar.zst"}]
        for group in ("common", "rke2", "agent")
    }
    return {
        "/harvester-release.yaml": yaml.safe_dump(release).encode(),
        "/bundle/metadata.yaml": yaml.safe_dump({"images": images}).encode(),
        "/rootfs.squashfs": f"{ROOTFS.replace(NEW_OS, os)}{files}".encode(),
    }


@asynccontextmanager
async def os_world(folder: Path) -> AsyncIterator[ToolkitWorld]:
    """Create a world as Rancher leaves a node when it asks for the post-drain hook."""
    async with toolkit_world(folder, os_iso()) as world:
        fill_host(world.tree.root)
        await set_node(world)
        yield world


@asynccontextmanager
async def single_node_world(folder: Path, **scenario: Any) -> AsyncIterator[ToolkitWorld]:
    """Create a cluster of one node with its other controllers, as the manager's node upgrade finds it."""
    cluster = scenarios.load("one-node").model_copy(update=scenario)
    iso = os_iso(kubernetes=cluster.release.kubernetes)
    async with toolkit_world(folder, iso, scenario=cluster, actors=True) as world:
        fill_host(world.tree.root)
        yield world


async def new_host(world: ToolkitWorld, folder: Path) -> None:
    """Replace the host by a new one in another folder."""
    root = folder / "host"
    fill_host(root)
    world.tree = HostTree(root)
    world.programs = SimulatedPrograms(root, folder / "state.json")
    await set_node(world)


def boot(world: ToolkitWorld, os: str) -> None:
    """Boot the host into an operating system."""
    tree.boot(world.tree.root, os_image=os, mounts=world.programs.state.mounts)
    world.programs.state.boot()


def boot_fallback(world: ToolkitWorld) -> None:
    """Boot the host as GRUB does after an upgrade to an image that does not boot: it starts the fallback."""
    rename(world, ACTIVE_IMAGE, PASSIVE_IMAGE)
    world.tree.path(ACTIVE_IMAGE).write_text(f"{ROOTFS}!sbin/init\n", encoding="utf-8")
    boot(world, OLD_OS)


def power_cut(world: ToolkitWorld) -> None:
    """Boot the host again: GRUB starts the active image, unless it is incomplete, and else the fallback."""
    boot(world, NEW_OS if world.tree.read(ACTIVE_IMAGE) == ROOTFS else OLD_OS)


def boots(world: ToolkitWorld) -> bool:
    """Return True if the next boot starts a complete image: the active one, or the fallback that is left."""
    active, passive = (world.tree.read(image) for image in (ACTIVE_IMAGE, PASSIVE_IMAGE))
    complete = (RUNNING, ROOTFS)
    return active in complete or passive in complete


def runs_from(world: ToolkitWorld) -> str:
    """Return the kernel's name of the image that runs."""
    state_partition.refresh(world.tree.root)
    file = (world.tree.read("/sys/block/loop0/loop/backing_file") or "").strip()
    return file.rpartition("/")[2]


def rename(world: ToolkitWorld, image: str, target: str) -> None:
    """Rename an image as elemental does."""
    world.tree.path(image).replace(world.tree.path(target))
    state_partition.refresh(world.tree.root)


async def set_node(world: ToolkitWorld, *, kubelet: str = KUBELET) -> None:
    """Set the node's kubelet version and drain taint."""
    taint = {"key": TAINT_KUBEVIRT_DRAIN, "value": "draining", "effect": "NoSchedule"}
    await world.client.patch(NODES, NODE, MergePatch({"spec": {"taints": [taint]}}))
    status = {"status": {"nodeInfo": {"kubeletVersion": kubelet}}}
    await world.client.patch(NODES, NODE, MergePatch(status), subresource="status")


def fill_host(root: Path) -> None:
    """Add the files of a host after `node prepare`."""
    tree.fill(root, os_image=OLD_OS)
    for archive in (AGENT_ARCHIVE, RKE2_ARCHIVE, RKE2_ARCHIVE.replace(".tar.zst", ".txt"), USER_ARCHIVE):
        path = root / archive.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("images\n", encoding="utf-8")


def elementals(world: ToolkitWorld) -> int:
    """Return how many times elemental began to install."""
    return sum(call.startswith("elemental upgrade --logfile") for call in world.programs.state.calls)


def expected_elementals(where: str) -> int:
    """Return how many times elemental begins if the first run is killed there: again, unless it had renamed images."""
    return 2 if where.startswith("within elemental") and not where.endswith("removal of what it needed") else 1


def is_upgraded(world: ToolkitWorld) -> bool:
    """Return True if the next boot starts the release, and the one after a failed boot the running system."""
    state = world.programs.state
    images = (world.tree.read(ACTIVE_IMAGE), world.tree.read(PASSIVE_IMAGE))
    folder = set(world.tree.names(f"{STATE_PARTITION}/cOS"))
    return (
        folder == {"active.img", "passive.img"}
        and images == (ROOTFS, RUNNING)
        and state.next_os == NEW_OS
        and is_clean(world)
    )


def keeps_old_os(world: ToolkitWorld) -> bool:
    """Return True if the next boot starts the operating system that runs."""
    state = world.programs.state
    return world.tree.read(ACTIVE_IMAGE) == RUNNING and (state.next_os, state.reboot_after) == ("", "")


def is_clean(world: ToolkitWorld) -> bool:
    """Return True if nothing is mounted, and only the log and the records are left.

    A killed elemental leaves the state partition writable until the next boot.
    """
    folder = world.tree.path(OS_WORK)
    left = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    kept = {"elemental.log", "kernel-arguments.json", "upgrade.json"}
    return set(world.programs.state.mounts) <= {STATE_PARTITION} and left <= kept
