"""Every command changes files only below HOST_DIR and in its temporary folder."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.vm_world import vm_world
from tests.support.toolkit.cluster_upgrade import iso_of, services
from tests.support.toolkit.file_operations import file_operations
from tests.support.toolkit.mounted_list import mount_list
from tests.support.toolkit.os_upgrade import os_world, single_node_world
from tests.support.toolkit.prepare import iso, prepare_world
from tests.support.toolkit.toolkit import ToolkitWorld, toolkit_world
from upgrade_manager.toolkit.commands import image_cleanup
from upgrade_manager.toolkit.run.catalogue import COMMANDS, steps_of

#: Directories of the host that administrators move to another disk, and link.
_LINKED = ("etc/rancher", "usr/local", "var/lib/rancher")
_IMAGE = "docker.io/rancher/old:v1"
#: Commands of a node that change nothing on it.
_READING = {"node survey", "node checksums"}


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[ToolkitWorld]:
    scenario = services()
    async with toolkit_world(folder, iso_of(scenario), scenario=scenario, actors=True) as world:
        yield world


@asynccontextmanager
async def _stopped_vms(folder: Path) -> AsyncIterator[ToolkitWorld]:
    async with vm_world(folder) as world:
        await world.run("vm-live-migrate-detector", shutdown=True)
        yield world


@asynccontextmanager
async def _old_image(folder: Path) -> AsyncIterator[ToolkitWorld]:
    async with toolkit_world(folder) as world:
        world.programs.state.images = [_IMAGE]
        yield world


@asynccontextmanager
async def _mounted_iso(folder: Path) -> AsyncIterator[ToolkitWorld]:
    async with toolkit_world(folder) as world:
        for name, content in (iso() | {"/rootfs.squashfs": b"system"}).items():
            path = world.iso_dir / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield world


#: The worlds of golden runs, by command.
WORLDS: dict[str, Callable[[Path], AbstractAsyncContextManager[ToolkitWorld]]] = {
    "node survey": os_world,
    "node prepare": prepare_world,
    "node checksums": _mounted_iso,
    "node pre-drain": vm_world,
    "node post-drain": os_world,
    "node single-node-upgrade": single_node_world,
    "cluster-upgrade": _cluster,
    "vm-live-migrate-detector": vm_world,
    "restore-vm": _stopped_vms,
    "version-guard": prepare_world,
    "image-cleanup": _old_image,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "cluster-upgrade": {"node": "", "pod": ""},
    "vm-live-migrate-detector": {"shutdown": True},
}


@pytest.mark.parametrize("command", COMMANDS)
async def test_nothing_outside_the_host_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    _surround(tmp_path / "pod", monkeypatch)
    async with WORLDS[command](tmp_path) as world:
        _link(world.tree.root, disk=tmp_path / "disk")
        # The simulated services keep their state beside the tree, and its kernel the files of its loop devices.
        beside = ("state.json", "state.new", "host.loop0", "host.loop7")
        allowed = (world.tree.root, world.folder, *(tmp_path / name for name in beside))
        before = _entries(tmp_path, besides=allowed)
        with file_operations(world.tree.root) as operations:
            await world.run(command, **OPTIONS.get(command, {}))
        after = _entries(tmp_path, besides=allowed)
        assert [path for path in before | after if before.get(path) != after.get(path)] == []
        changed = [path for path in operations.outside if not _is_of_simulated_host(path)]
        assert [path for path in changed if not _is_below(path, allowed)] == []
        assert steps_of(command)[-1].name in world.steps.lines[-1]
        assert bool(operations.inside) is (command.startswith("node ") and command not in _READING)


def _is_of_simulated_host(path: Path) -> bool:
    """Return True for a file that RKE2 writes, which the simulated cluster plays in this process."""
    return any(part.startswith("simulated-hosts-") for part in path.parts)


def _surround(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the process's working directory, home and folder of temporary files, and mount the Pod's Secrets."""
    for name in ("work", "home", "tmp"):
        (pod / name).mkdir(parents=True)
        (pod / name / "before").write_text("of another program")
    monkeypatch.chdir(pod / "work")
    monkeypatch.setenv("HOME", str(pod / "home"))
    monkeypatch.setenv("TMPDIR", str(pod / "tmp"))
    monkeypatch.setattr(image_cleanup, "LIST_PATH", str(mount_list(pod, _IMAGE)))
    # Python keeps modules beside their sources when it first imports them.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def _link(root: Path, *, disk: Path) -> None:
    """Move directories of the host to a disk of the host, whose path leads elsewhere outside of it."""
    for name in _LINKED:
        link, outside = root / name, disk / name
        inside = root / str(outside).lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        outside.mkdir(parents=True)
        link.mkdir(parents=True, exist_ok=True)
        link.rename(inside)
        link.symlink_to(outside)


def _entries(folder: Path, *, besides: tuple[Path, ...]) -> dict[Path, tuple[int, str]]:
    """Return mode and content of everything in a folder, directories included."""
    found = (path for path in folder.rglob("*") if not _is_below(path, besides))
    return {path: (path.lstat().st_mode, _content(path)) for path in found}


def _content(path: Path) -> str:
    if path.is_symlink():
        return str(path.readlink())
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _is_below(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
