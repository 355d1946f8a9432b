"""A virtual machine on one disk: QEMU, its serial console in a file, and programs in the guest by ssh.

The guest's network reaches nothing but what `forward` gives it: ports of this machine's loopback, under the same
numbers on its own.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hack.control_plane.control_plane import free_port
from hack.real_host.disk import copy_sparse
from hack.real_host.qmp import Monitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

_MEMORY_MIB, _PROCESSORS = 3072, 2
#: Seconds for a boot, much of them without hardware virtualisation; for a program; and between two attempts.
_BOOT_TIMEOUT, _PROGRAM_TIMEOUT, _POLL = 1200.0, 1200.0, 2.0
_LOG_LINES = 15
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class MachineError(Exception):
    """The guest does not do what it should; the end of its console, or of a program's output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of a program in the guest."""

    status: int
    stdout: str
    stderr: str


class Machine:
    """The guest; QEMU runs while the context is entered. `key` is the private key of its root user."""

    def __init__(self, disk: Path, folder: Path, *, key: Path) -> None:
        self.disk = disk
        self._folder = folder
        self._key = key
        self._port = free_port()
        self._process: subprocess.Popen[bytes]
        # A socket's path has at most 108 bytes, and a test's folder may have more.
        self._sockets = tempfile.TemporaryDirectory(prefix="real-host-")
        self._monitor = Path(self._sockets.name, "qmp")

    @property
    def console(self) -> str:
        """The output of the guest's serial console, of all boots."""
        path = self._folder / "console"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        network = f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self._port}-:22"
        argv = [
            *("qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-accel", "tcg,thread=multi"),
            *(
                "-smp",
                str(_PROCESSORS),
                "-m",
                str(_MEMORY_MIB),
                "-display",
                "none",
                "-monitor",
                "none",
                "-no-user-config",
            ),
            *("-drive", f"file={self.disk},format=raw,if=virtio,cache=unsafe,discard=unmap"),
            *("-netdev", network, "-device", "virtio-net-pci,netdev=net"),
            *("-chardev", f"file,id=serial,path={self._folder}/console,append=on", "-serial", "chardev:serial"),
            *("-qmp", f"unix:{self._monitor},server=on,wait=off"),
        ]
        with (self._folder / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._sockets.cleanup()

    def wait_until(self, condition: Callable[[], bool], what: str, *, seconds: float = _BOOT_TIMEOUT) -> None:
        """Wait until the condition holds. Raises MachineError with the end of the console."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self._process.poll() is not None:
                raise MachineError(f"QEMU has ended: {(self._folder / 'qemu.log').read_text(errors='replace')}")
            if time.monotonic() > deadline:
                tail = "\n".join(self.console.splitlines()[-_LOG_LINES:])
                raise MachineError(f"after {seconds:g} s not {what}; the console ends with:\n{tail}")
            time.sleep(_POLL)

    def wait_for_boot(self, *, after: str = "") -> str:
        """Wait until programs can be run in another boot than `after`, and return the boot's identifier."""
        boots: list[str] = []

        def is_up() -> bool:
            with suppress(subprocess.TimeoutExpired):
                result = self.run("cat", _BOOT_ID, seconds=60)
                boots.append(result.stdout.strip() if result.status == 0 else "")
            return bool(boots) and boots[-1] not in {"", after}

        self.wait_until(is_up, "booted")
        return boots[-1]

    def wait_for_console(self, text: str) -> None:
        """Wait until the console shows a text."""
        self.wait_until(lambda: text in self.console, f"on the console: {text}")

    def run(self, *argv: str, seconds: float = _PROGRAM_TIMEOUT, stdin: Path | None = None) -> Result:
        """Run a program in the guest."""
        command = [*self._ssh(), shlex.join(argv)]
        with (stdin or Path(os.devnull)).open("rb") as file:
            ended = subprocess.run(command, stdin=file, capture_output=True, timeout=seconds, check=False)
        return Result(status=ended.returncode, stdout=ended.stdout.decode(), stderr=ended.stderr.decode())

    def call(self, *argv: str, stdin: Path | None = None) -> str:
        """Run a program that must return 0, and return its output. Raises MachineError."""
        result = self.run(*argv, stdin=stdin)
        if result.status != 0:
            raise MachineError(f"{shlex.join(argv)} returned {result.status}: {result.stderr}{result.stdout}")
        return result.stdout

    def start(self, *argv: str, log: Path) -> subprocess.Popen[bytes]:
        """Start a program in the guest, with its output in a file of this machine; the caller ends it."""
        with log.open("wb") as file:
            return subprocess.Popen(
                [*self._ssh(), shlex.join(argv)], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )

    @contextmanager
    def forward(self, *ports: int) -> Iterator[None]:
        """Let the guest reach these ports of this machine on its loopback, until it reboots."""
        options = [option for port in ports for option in ("-R", f"127.0.0.1:{port}:127.0.0.1:{port}")]
        argv = [*self._ssh(), "-o", "ExitOnForwardFailure=yes", *options, "sleep", "infinity"]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        try:
            probe = " && ".join(f": </dev/tcp/127.0.0.1/{port}" for port in ports)
            self.wait_until(lambda: self.run("bash", "-c", probe).status == 0, "reached by the forwarded ports")
            yield
        finally:
            process.kill()
            process.wait()

    def reset(self) -> None:
        """Reset it, as its button does."""
        with Monitor(self._monitor) as monitor:
            monitor.execute("system_reset")

    def power_cut(self, copy: Path) -> None:
        """Copy the disk as a power cut would leave it now; the guest continues.

        What QEMU has acknowledged is on the disk, and what the guest's kernel has not written is not.
        """
        with Monitor(self._monitor) as monitor:
            monitor.execute("stop")
            try:
                copy_sparse(self.disk, copy)
            finally:
                monitor.execute("cont")

    def unplug(self) -> None:
        """End it at once, whatever it does; nothing of it is run afterwards."""
        self._process.kill()
        self._process.wait()

    def _ssh(self) -> list[str]:
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", "ConnectTimeout=5")
        chosen = [part for option in (*options, "LogLevel=ERROR", "IdentitiesOnly=yes") for part in ("-o", option)]
        return ["ssh", "-F", "none", "-i", str(self._key), "-p", str(self._port), *chosen, "root@127.0.0.1"]
