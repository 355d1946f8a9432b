"""A host in separate namespaces, for programs that mount file systems or run as services.

Its programs are this machine's, its other files are those of the test. It needs root. With systemd, process 1 is a real
one; else it only keeps the namespaces. All of it ends with the test, however that ends: mounts, services, loop devices.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.programs.polling import eventually
from upgrade_manager.toolkit.host.host_programs import PATH, Call, ChrootPrograms, run_program
from upgrade_manager.toolkit.host.host_tree import HostTree

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEMD = "/lib/systemd/systemd"
#: Debian's packages of the programs.
PACKAGES = {
    "mke2fs": "e2fsprogs",
    "e2fsck": "e2fsprogs",
    "debugfs": "e2fsprogs",
    "mksquashfs": "squashfs-tools",
    "rsync": "rsync",
    "setfattr": "attr",
    "getfattr": "attr",
    SYSTEMD: "systemd",
    "containerd": "containerd",
    "ctr": "containerd",
}
#: Arguments: the root, and the command of process 1. Writable are the root's own folders alone.
_PREPARE = """set -eu
root=$1; shift
mount --make-rprivate /
mount --bind "$root" "$root"
for name in usr bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$name" ]; then
        cp -d "/$name" "$root/$name"
    elif [ -d "/$name" ]; then
        mkdir "$root/$name"
        mount -o bind,ro "/$name" "$root/$name"
    fi
done
cd "$root"
mkdir -p run tmp dev proc sys etc root var persistent
# As on a Harvester host, /usr/local is on another partition, which is writable.
mount --bind persistent usr/local
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs dev
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 loop-control:10:237; do
    IFS=: read -r name major minor <<EOF
$node
EOF
    mknod -m 666 "dev/$name" c "$major" "$minor"
done
for number in $(seq 0 63); do mknod "dev/loop$number" b 7 "$number"; done
ln -s /proc/self/fd dev/fd
echo ready
exec chroot "$root" "$@"
"""
_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--cgroup")
#: Seconds.
_TIMEOUT = 60.0


def skip_without(*programs: str) -> None:
    """Skip the test where it is not root, or lacks one of the programs, with the package to install."""
    if os.getuid() != 0:
        pytest.skip("only root may mount file systems")
    for program in programs:
        if shutil.which(program, path=PATH) is None:
            pytest.skip(f"no {Path(program).name} here: `make programs` installs Debian's package {PACKAGES[program]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateHost:
    """The running host."""

    root: Path
    process: asyncio.subprocess.Process
    #: The files as the host sees them, with its mounts.
    tree: HostTree
    #: As the toolkit runs programs on a host.
    programs: ChrootPrograms

    async def run(self, *argv: str, timeout: float = _TIMEOUT) -> str:  # noqa: ASYNC109  # of the product's own call
        """Run a program of the host, which must succeed, and return its output."""
        return (await run_program(self.programs, Call(argv=argv, timeout=timeout))).stdout.strip()


@asynccontextmanager
async def private_host(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, init: tuple[str, ...] = ("/bin/cat",), files: Mapping[str, str]
) -> AsyncIterator[PrivateHost]:
    """Run the host with these files until the block ends; `init` is the command of process 1."""
    root, group = folder / "host", _control_group(folder)
    for path, text in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    pipe = asyncio.subprocess.PIPE
    argv = ("setpriv", "--pdeathsig", "KILL", "unshare", *_NAMESPACES, "--fork", "--kill-child", "sh", "-c", _PREPARE)
    join = f'echo 0 >{group}/cgroup.procs; exec "$@"'
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", join, "sh", *argv, "sh", str(root), *init),
        stdin=pipe,
        stdout=pipe,
        env={"PATH": PATH, "container": "private-host"},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_TIMEOUT):
            line = await process.stdout.readline()
        if line != b"ready\n":
            pytest.skip("no namespaces with own mounts here")
        first = await eventually(partial(asyncio.to_thread, _first, process.pid), seconds=_TIMEOUT)
        _enter_by_chroot(folder / "bin", first, monkeypatch)
        tree = HostTree(Path(f"/proc/{first}/root"))
        yield PrivateHost(root=root, process=process, tree=tree, programs=ChrootPrograms(root))
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await eventually(partial(asyncio.to_thread, _is_removed, group), seconds=_TIMEOUT)


def _first(pid: int) -> int:
    """Return process 1 of the namespaces, by its number outside, once it has changed its root."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return int(children[0]) if children and Path(f"/proc/{children[0]}/root").readlink() != Path("/") else 0


def _enter_by_chroot(folder: Path, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program chroot enter the namespaces first, as the toolkit's Pod is in those of its host."""
    folder.mkdir()
    chroot = folder / "chroot"
    chroot.write_text(f'#!/bin/sh\nexec nsenter --target {first} {" ".join(_NAMESPACES)} chroot "$@"\n')
    chroot.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def _control_group(folder: Path) -> Path:
    """Create a separate group for the host's processes: systemd makes groups in it."""
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    found = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    if not found:
        pytest.skip("no hierarchy of control groups of version 2 here")
    group = Path(found[0], f"private-host-{os.getpid()}-{folder.name}")
    group.mkdir()
    return group


def _is_removed(group: Path) -> bool:
    """Remove the groups, which may still have processes that end."""
    try:
        for path in sorted(group.rglob("*/"), reverse=True):
            path.rmdir()
        group.rmdir()
    except OSError:
        return False
    return True
