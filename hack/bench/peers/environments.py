"""The controllers that are compared, and an environment for each from its lock file."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from upgrade_manager import __version__

ROOT = Path(__file__).parents[3]
_LOCKS = Path(__file__).with_name("requirements")
#: Of the environments, and of what the benchmarks write.
FOLDER = ROOT / "build" / "peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A controller, and how it is started."""

    name: str
    #: Its lock file, of exact versions with hashes.
    lock: Path
    #: The program, in the environment's folder of programs, and its arguments.
    command: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the name with the version of its library."""
        if self.name == RAW:
            return f"{RAW} (aiohttp {self._version('aiohttp')})"
        return f"{self.name} {self._version(self.name)}"

    def _version(self, library: str) -> str:
        found = re.search(rf"^{library.replace('_', '-')}==(\S+)", self.lock.read_text(), re.MULTILINE)
        return found[1] if found else __version__


def _peer(name: str, *command: str, lock: Path | None = None) -> Peer:
    return Peer(
        name=name,
        lock=lock or _LOCKS / f"{name}.txt",
        command=command or ("python", "-m", f"hack.bench.peers.with_{name}"),
    )


OWN, RAW = "upgrade_manager", "raw"
#: By name, in the order of the tables.
PEERS = {
    peer.name: peer
    for peer in (
        _peer(OWN, lock=ROOT / "requirements" / "run.txt"),
        _peer("kopf", "kopf", "run", "--quiet", "--namespace=default", "-m", "hack.bench.peers.with_kopf"),
        _peer("kr8s"),
        _peer("kubernetes_asyncio"),
        _peer(RAW),
    )
}
#: Environment variable with the names of the controllers to compare, with commas; by default all.
_ONLY = "BENCH_PEERS"
PLOT_LOCK = _LOCKS / "plot.txt"


def chosen() -> list[Peer]:
    """Return the controllers to compare, with their environments."""
    peers = [PEERS[name] for name in os.environ.get(_ONLY, "").split(",") if name] or list(PEERS.values())
    for peer in peers:
        programs(peer.lock)
    return peers


def programs(lock: Path) -> Path:
    """Return the folder of programs of the lock file's environment, which is created when it is missing or old."""
    folder = FOLDER / lock.stem
    mark, wanted = folder / "installed", hashlib.sha256(lock.read_bytes()).hexdigest()
    if not mark.exists() or mark.read_text() != wanted:
        print(f"installing {lock.name}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(lock)], check=True)
        mark.write_text(wanted)
    return folder / "bin"


def command(peer: Peer) -> list[str]:
    """Return the command that starts the controller."""
    program, *arguments = peer.command
    return [str(programs(peer.lock) / program), *arguments]
