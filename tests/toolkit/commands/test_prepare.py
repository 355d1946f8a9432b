from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

import yaml
import zstandard

from tests.support.toolkit import PLAN, toolkit_world
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from pathlib import Path


def archive(*references: str) -> bytes:
    """Return an archive as `docker save` writes it, compressed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as content:
        manifest = json.dumps([{"RepoTags": [reference]} for reference in references]).encode()
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(manifest)
        content.addfile(entry, io.BytesIO(manifest))
    return zstandard.compress(buffer.getvalue())


def iso() -> dict[str, bytes]:
    """Return the files of an ISO with three archives."""
    groups = {"common": "docker.io/rancher/rancher:v2.14.0", "rke2": "docker.io/rancher/hardened-etcd:v3.6"}
    groups["agent"] = "docker.io/rancher/system-agent:v0.3"
    files = {
        "/harvester-release.yaml": yaml.safe_dump(
            {
                "harvester": "v1.8.0",
                "os": "Harvester v1.8.0",
                "kubernetes": "v1.35.2+rke2r1",
                "rancher": "v2.14.0",
            }
        ).encode()
    }
    images = {}
    for group, reference in groups.items():
        images[group] = [{"list": f"/{group}/{group}.txt", "archive": f"/{group}/{group}.tar.zst"}]
        files[f"/bundle/{group}/{group}.txt"] = f"{reference}\n".encode()
        files[f"/bundle/{group}/{group}.tar.zst"] = archive(reference)
    files["/bundle/metadata.yaml"] = yaml.safe_dump({"images": images}).encode()
    return files


async def test_images_are_imported_and_archives_kept(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path, iso()) as world:
        status = {"status": {"previousVersion": "v1.7.1", "releaseMetadata": {"harvester": "v1.8.0"}}}
        await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch(status), subresource="status")
        await world.run("node prepare", node="", pod="")
        assert world.programs.state.images == [
            "docker.io/rancher/hardened-etcd:v3.6",
            "docker.io/rancher/rancher:v2.14.0",
        ]
        found = sorted(str(path.relative_to(world.tree.root)) for path in world.tree.root.rglob("*") if path.is_file())
        assert found == [
            "var/lib/rancher/agent/images/agent.tar.zst",
            "var/lib/rancher/agent/images/agent.txt",
            "var/lib/rancher/rke2/agent/images/rke2.tar.zst",
            "var/lib/rancher/rke2/agent/images/rke2.txt",
        ]
