"""Compiling the control plane's programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.control_plane.disk import FULL
from hack.control_plane.errors import ProvisionError
from hack.control_plane.modules import DiskFull, download, failure, shortened, with_replacements
from hack.control_plane.pins import GO_FOLDER, Module, required

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hack.control_plane.toolchain import Go

_VERSION = "k8s.io/component-base/version"
#: The programs of Kubernetes.
_COMMANDS = ("kube-apiserver", "kube-controller-manager", "kubectl")
#: How often `build_programs` tells of a step.
STEPS = 2 + len(_COMMANDS)


def build_programs(go: Go, work: Path) -> None:
    """Put etcd, kube-apiserver, kube-controller-manager and kubectl into the folder `out` of `work`."""
    _build_etcd(go, work)
    _build_kubernetes(go, work)


def kubernetes_module(go: Go, work: Path, *, sums: str) -> Path:
    """A folder with the go.mod and go.sum that Kubernetes is built by, its replacements included."""
    kubernetes = required("kubernetes")
    downloaded = download(go, [kubernetes], sums=sums, work=work)[kubernetes.path]
    text = (GO_FOLDER / "kubernetes" / "go.mod").read_text(encoding="utf-8")
    theirs = downloaded.go_mod.read_text(encoding="utf-8")
    return _place(work / "kubernetes", with_replacements(text, kubernetes, theirs), sums)


def etcd_module(work: Path, *, sums: str) -> Path:
    """The same for etcd, which needs no replacements."""
    return _place(work / "etcd", (GO_FOLDER / "etcd" / "go.mod").read_text(encoding="utf-8"), sums)


def packages(name: str) -> list[str]:
    """The packages of the programs that are built from hack/control_plane/go/NAME."""
    path = required(name).path
    return [f"{path}/cmd/{command}" for command in _COMMANDS] if name == "kubernetes" else [path]


def sums(name: str) -> str:
    """What go.sum of hack/control_plane/go/NAME holds."""
    return (GO_FOLDER / name / "go.sum").read_text(encoding="utf-8")


def _build_etcd(go: Go, work: Path) -> None:
    version = required("etcd").version
    go.progress.step(f"building etcd {version}")
    place = etcd_module(work, sums=sums("etcd"))
    _fetch(go, packages("etcd"), cwd=place)
    _compile(go, packages("etcd")[0], "-s -w", work / "out" / "etcd", cwd=place)


def _build_kubernetes(go: Go, work: Path) -> None:
    kubernetes = required("kubernetes")
    go.progress.step(f"fetching the sources of Kubernetes {kubernetes.version}")
    place = kubernetes_module(go, work, sums=sums("kubernetes"))
    _fetch(go, packages("kubernetes"), cwd=place)
    for command, package in zip(_COMMANDS, packages("kubernetes"), strict=True):
        go.progress.step(f"building {command} {kubernetes.version}")
        _compile(go, package, _flags(kubernetes), work / "out" / command, cwd=place)


def _flags(kubernetes: Module) -> str:
    """The linker's: no symbols, and the version that Kubernetes' own build would put in."""
    major, minor, _ = kubernetes.version.removeprefix("v").split(".", 2)
    values = {"gitVersion": kubernetes.version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {_VERSION}.{key}={value}" for key, value in values.items())])


def _place(folder: Path, go_mod: str, go_sum: str) -> Path:
    folder.mkdir()
    (folder / "go.mod").write_text(go_mod)
    (folder / "go.sum").write_text(go_sum)
    return folder


def _fetch(go: Go, wanted: Sequence[str], *, cwd: Path) -> None:
    """Have Go download what the packages are made of, so that a failure here is one of modules."""
    finished = go.run("list", "-deps", *wanted, cwd=cwd)
    if finished.code:
        raise failure(finished.errors)


def _compile(go: Go, package: str, flags: str, target: Path, *, cwd: Path) -> None:
    finished = go.run("build", "-ldflags", flags, "-o", str(target), package, cwd=cwd)
    if finished.code:
        if FULL in finished.errors:
            raise DiskFull
        raise ProvisionError(f"{target.name} could not be built with {go.program}: {shortened(finished.errors)}")
