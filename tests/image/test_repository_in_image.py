"""The upgrade repository in the toolkit's image: the Deployment's container, its mount of the ISO and its nginx."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from pathlib import Path
from random import Random

import aiohttp
import pytest

from tests.support.programs.polling import eventually
from tests.support.programs.processes import group_is_alive
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import ROOT, repository_deployment
from upgrade_manager.resources.toolkit import ToolkitImage
from upgrade_manager.toolkit.iso.repository_files import HttpRepositoryFiles, RepositoryFiles, read_small

pytestmark = [pytest.mark.image, pytest.mark.real_loop]

DEPLOYMENT = repository_deployment(
    Owner(name="up", uid="u-1"), image=ToolkitImage(repository="toolkit", tag="v1"), claim="iso", replicas=1
)
(CONTAINER,) = DEPLOYMENT["spec"]["template"]["spec"]["containers"]
READINESS = CONTAINER["readinessProbe"]["httpGet"]
LIVENESS = CONTAINER["livenessProbe"]["exec"]["command"]
#: Below the ISO's root.
RELEASE, RELEASE_TEXT = "/harvester-release.yaml", b"harvester: v1.8.0\n"
LARGE, LARGE_CONTENT = "/bundle/harvester/images/archive.tar.zst", Random(1).randbytes(3_000_000)
OFFSET = 1_234_567
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 30.0


def execute(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=SECONDS)  # noqa: S603  # fixed commands


def mounts() -> str:
    return Path("/proc/self/mounts").read_text()


def disk_image(folder: Path) -> Path:
    """Make the ISO's disk image; with ext4, because not every kernel of a test machine has iso9660."""
    content, disk = folder / "content", folder / "iso" / "disk.img"
    for path, data in ((RELEASE, RELEASE_TEXT), (LARGE, LARGE_CONTENT)):
        (content / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (content / path[1:]).write_bytes(data)
    disk.parent.mkdir()
    execute("mkfs.ext4", "-q", "-d", str(content), str(disk), "16M")
    return disk


def toolkit_root(iso: Path) -> Path:
    """Mount in the image's root what a runtime mounts. The mounts end with the namespace of this process."""
    root = Path(os.environ["TOOLKIT_ROOT"])
    (root / "iso").mkdir()
    for source, target in ((iso, "iso"), (Path("/dev"), "dev"), (Path("/proc"), "proc")):
        execute("mount", "--rbind", str(source), str(root / target))
    execute("mount", "-o", "remount,bind,ro", str(root / "iso"))
    return root


class Container:
    """The container of the Deployment in the image's root; localhost is its Pod."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: asyncio.subprocess.Process

    async def start(self) -> None:
        self._process = await self._execute(*CONTAINER["command"], *CONTAINER["args"])
        async with aiohttp.ClientSession() as session:
            await eventually(lambda: self._is_ready(session), seconds=SECONDS)

    async def end(self, number: signal.Signals) -> int:
        """End all its processes, and return the first one's status."""
        os.killpg(self._process.pid, number)
        async with asyncio.timeout(SECONDS):
            status = await self._process.wait()
        await eventually(self._is_ended, seconds=SECONDS)
        return status

    async def run(self, *argv: str) -> int:
        """Run a command in it, and return its status."""
        async with asyncio.timeout(SECONDS):
            return await (await self._execute(*argv)).wait()

    async def _execute(self, *argv: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "chroot", self._root, *argv, env={"PATH": PATH}, start_new_session=True
        )

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        assert self._process.returncode is None
        with contextlib.suppress(aiohttp.ClientConnectorError):
            async with session.get(f"http://127.0.0.1:{READINESS['port']}{READINESS['path']}") as response:
                return response.ok
        return False

    async def _is_ended(self) -> bool:
        """Return True if its last process ended, too, as a runtime waits for it before it starts another container."""
        return not group_is_alive(self._process.pid)


def prepared(folder: Path) -> Container:
    execute("ip", "link", "set", "lo", "up")
    return Container(toolkit_root(disk_image(folder).parent))


async def check_downloads(files: RepositoryFiles) -> None:
    """Check that a download continues where it was interrupted, and starts over after a change of the file."""
    assert await read_small(files, RELEASE) == RELEASE_TEXT
    async with files.open(LARGE) as whole:
        assert (whole.size, whole.offset) == (len(LARGE_CONTENT), 0)
        assert b"".join([piece async for piece in whole.pieces]) == LARGE_CONTENT
    async with files.open(LARGE, offset=OFFSET, etag=whole.etag) as rest:
        assert (rest.size, rest.offset) == (len(LARGE_CONTENT), OFFSET)
        assert b"".join([piece async for piece in rest.pieces]) == LARGE_CONTENT[OFFSET:]
    async with files.open(LARGE, offset=OFFSET, etag='"another"') as other:
        assert other.offset == 0


async def test_deployment_serves_the_iso(tmp_path: Path) -> None:
    container = await asyncio.to_thread(prepared, tmp_path)
    assert await container.run(*LIVENESS) != 0
    await container.start()
    assert await container.run(*LIVENESS) == 0
    async with HttpRepositoryFiles("http://127.0.0.1/harvester-iso", user_agent="test") as files:
        await check_downloads(files)
        # The ISO stays mounted, unless the runtime unmounts it.
        assert await container.end(signal.SIGKILL) == -signal.SIGKILL
        await container.start()
        await check_downloads(files)
    assert mounts().count(f"{ROOT} ") == 1
    assert await container.end(signal.SIGTERM) == 0
