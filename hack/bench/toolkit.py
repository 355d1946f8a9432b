"""`node prepare` on large archives, relative to `curl | zstd -d`, and the import time of its commands."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
import zstandard

from hack.bench.catalogue import Figure
from hack.control_plane.control_plane import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Archives of the synthetic release, and MiB that each unpacks to; memory does not depend on them.
ARCHIVES = 5
SIZE = 800
#: Runs of each kind; the fastest counts, because the machine is shared.
RUNS = 5
_MIB = 1024 * 1024
_CHROOT = """#!/bin/sh
# Stands for ctr: it lists the images of the archives that it has read.
root=$1
case "$*" in
*list*) cat "$root/images" ;;
*) cat >/dev/null && echo "docker.io/bench/image-$(wc -l <"$root/images"):v1" >>"$root/images" ;;
esac
"""
_IMPORTS = """
import resource
from upgrade_manager.cli import lean_imports
lean_imports.skip_optional_parts()
import upgrade_manager.cli.options, upgrade_manager.cli.toolkit
from upgrade_manager.toolkit.run.catalogue import steps_of
steps_of("node prepare")
print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
"""


def measure() -> list[Figure]:
    """Import a synthetic release; skipped without curl and zstd."""
    figures = [Figure(name="import time of node commands, CPU", value=_import_time(), unit="s", target=0.3)]
    missing = [name for name in ("curl", "zstd") if shutil.which(name) is None]
    if missing:
        print(f"toolkit: rate skipped: {' and '.join(missing)} not found", file=sys.stderr)
        return figures
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        root = Path(folder)
        _release(root / "iso")
        with _server(root / "iso") as url:
            # By turns, because the machine is not equally busy all the time.
            runs = [(_prepare(url, root / f"host-{number}", root), _curl_and_zstd(url)) for number in range(RUNS)]
    seconds = min(prepared["seconds"] for prepared, _ in runs)
    memory = max(prepared["memory"] for prepared, _ in runs)
    return [
        *figures,
        Figure(
            name="download and import, relative to curl | zstd -d",
            value=min(piped for _, piped in runs) / seconds,
            unit="",
            target=0.7,
            at_most=False,
        ),
        Figure(name="the same, unpacked", value=ARCHIVES * SIZE / seconds, unit="MiB/s", target=100, at_most=False),
        Figure(name="peak memory meanwhile", value=memory, unit="MB", target=150),
    ]


def _import_time() -> float:
    """Return the CPU time of a process that only imports."""
    command = [sys.executable, "-c", _IMPORTS]
    return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(2 * RUNS))


def _release(folder: Path) -> None:
    """Write an ISO whose archives compress well, to a quarter."""
    dice = random.Random(0)
    blocks = [dice.randbytes(3000) + dice.randbytes(60) * 80 for _ in range(500)]
    entries = []
    for number in range(ARCHIVES):
        name = f"bench-{number}"
        entries.append({"list": f"/{name}.txt", "archive": f"/{name}.tar.zst"})
        (folder / "bundle").mkdir(parents=True, exist_ok=True)
        (folder / "bundle" / f"{name}.txt").write_text(f"docker.io/bench/image-{number}:v1\n")
        _archive(folder / "bundle" / f"{name}.tar.zst", blocks, dice)
    groups = {"common": entries[:-1], "rke2": entries[-1:], "agent": entries[-1:]}
    (folder / "bundle/metadata.yaml").write_text(yaml.safe_dump({"images": groups}))


def _archive(path: Path, blocks: list[bytes], dice: random.Random) -> None:
    header = tarfile.TarInfo("layer.tar")
    header.size = SIZE * _MIB
    compressor = zstandard.ZstdCompressor(level=3, threads=-1, write_checksum=True)
    with path.open("wb") as file, compressor.stream_writer(file) as writer:
        writer.write(header.tobuf())
        for _ in range(SIZE):
            piece = b"".join(dice.choices(blocks, k=_MIB // 7800 + 1))
            writer.write(piece[:_MIB])
        writer.write(bytes(2 * 512))


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            subprocess.run(
                [
                    "curl",
                    "--silent",
                    "--retry",
                    "50",
                    "--retry-connrefused",
                    "--retry-delay",
                    "1",
                    "-o",
                    os.devnull,
                    url,
                ],
                check=True,
            )
            yield url
        finally:
            process.terminate()


def _prepare(url: str, root: Path, folder: Path) -> dict[str, float]:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "chroot").write_text(_CHROOT)
    (programs / "chroot").chmod(0o755)
    root.mkdir()
    (root / "images").touch()
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "hack.bench.toolkit_import", url, str(root)]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
    )
    shutil.rmtree(root)
    return found


def _curl_and_zstd(url: str) -> float:
    """Return the seconds that a shell takes, whose last program discards its input, too."""
    began = time.monotonic()
    for number in range(ARCHIVES):
        pipeline = f"curl --silent --fail {url}/bundle/bench-{number}.tar.zst | zstd -d | cat >{os.devnull}"
        subprocess.run(["/bin/sh", "-c", pipeline], check=True)
    return time.monotonic() - began
