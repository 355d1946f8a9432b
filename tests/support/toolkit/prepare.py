"""A node before `node prepare`, and what must be true afterwards."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import yaml

from hack.host.programs import SimulatedPrograms
from tests.support.toolkit.image_archives import image_archive
from tests.support.toolkit.toolkit import PLAN, toolkit_world
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.toolkit.host.host_paths import AGENT_IMAGES, RKE2_IMAGES, WORK
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.images.image_record import ImageRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.toolkit.toolkit import ToolkitWorld

RANCHER, ETCD, AGENT = (
    f"docker.io/rancher/{name}" for name in ("rancher:v2.14.0", "hardened-etcd:v3.6", "system-agent:v0.3")
)
BUSYBOX = "docker.io/library/busybox:1"
#: Images of each archive; one list names an image as users write it.
ARCHIVES = {"rancher": (RANCHER, BUSYBOX), "rke2": (ETCD,), "agent": (AGENT,)}
GROUPS = {"common": "rancher", "rke2": "rke2", "agent": "agent"}
KEPT = {
    f"{folder}/{name}{suffix}": f"/bundle/{name}{suffix}"
    for folder, name in ((RKE2_IMAGES, "rke2"), (AGENT_IMAGES, "agent"))
    for suffix in (".tar.zst", ".txt")
}
IMPORTED = f"{WORK}/images"


def iso() -> dict[str, bytes]:
    """Return the files of an ISO with three archives."""
    release = {"harvester": "v1.8.0", "os": "Harvester v1.8.0", "kubernetes": "v1.35.2+rke2r1", "rancher": "v2.14.0"}
    images = {group: [{"list": f"/{name}.txt", "archive": f"/{name}.tar.zst"}] for group, name in GROUPS.items()}
    files = {
        "/harvester-release.yaml": yaml.safe_dump(release).encode(),
        "/bundle/metadata.yaml": yaml.safe_dump({"images": images}).encode(),
    }
    for name, references in ARCHIVES.items():
        listed = (reference.replace("docker.io/library/", "") for reference in references)
        files[f"/bundle/{name}.txt"] = "".join(f"{one}\n" for one in listed).encode()
        files[f"/bundle/{name}.tar.zst"] = image_archive(*references)
    return files


@asynccontextmanager
async def prepare_world(folder: Path) -> AsyncIterator[ToolkitWorld]:
    """Create a world as the manager leaves it in ImagePreload."""
    async with toolkit_world(folder, iso()) as world:
        status = {"status": {"previousVersion": "v1.7.1", "releaseMetadata": {"harvester": "v1.8.0"}}}
        await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch(status), subresource="status")
        yield world


def new_host(world: ToolkitWorld, folder: Path) -> None:
    """Replace the host by an empty one in another folder."""
    root = folder / "host"
    root.mkdir(parents=True)
    world.tree = HostTree(root)
    world.programs = SimulatedPrograms(root, folder / "state.json")


def is_prepared(world: ToolkitWorld) -> bool:
    """Return True if containerd has the images, and the host the kept archives and nothing else."""
    root = world.tree.root
    found = {f"/{path.relative_to(root)}": path.read_bytes() for path in root.rglob("*") if path.is_file()}
    record = f"{WORK}/images.json"
    expected = {target: world.iso.files[source] for target, source in KEPT.items()}
    complete = found.pop(record, b"") and found == expected and not world.tree.exists(IMPORTED)
    imported = set(world.programs.state.images) >= {RANCHER, BUSYBOX, ETCD} and not world.programs.state.incomplete
    return bool(complete) and imported and ImageRecord.load(world.tree).importing == ""


def imports(world: ToolkitWorld) -> int:
    """Return how many imports began."""
    return sum("images import" in call for call in world.programs.state.calls)
