"""Bringing hack/control_plane/go up to date after a version in it was changed: `python -m hack.control_plane --lock`.

Go's checksum database vouches for what is new, as always where a go.sum says nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hack.control_plane.build import etcd_module, kubernetes_module, packages
from hack.control_plane.modules import download, failure
from hack.control_plane.pins import GO_FOLDER, downloaded

if TYPE_CHECKING:
    from pathlib import Path

    from hack.control_plane.toolchain import Go

#: How often `refresh_sums` tells of a step.
STEPS = 3
_LANGUAGE = re.compile(r"^go \S+$", re.MULTILINE)


def refresh_sums(go: Go, work: Path, *, pinned: Path = GO_FOLDER) -> None:
    """Write the go.sum files anew, and into each go.mod the Go version that its requirements ask for."""
    go.progress.step("pinning Kubernetes")
    _refresh(go, "kubernetes", kubernetes_module(go, work, sums=""), pinned)
    go.progress.step("pinning etcd")
    _refresh(go, "etcd", etcd_module(work, sums=""), pinned)
    go.progress.step("pinning the modules with definitions")
    found = download(go, downloaded(), sums="", work=work)
    lines = [f"{module.path} {module.version} {found[module.path].sum}\n" for module in downloaded()]
    (pinned / "crds" / "go.sum").write_text("".join(lines))


def _refresh(go: Go, name: str, place: Path, pinned: Path) -> None:
    finished = go.run("list", "-mod=mod", "-deps", *packages(name), cwd=place)
    if finished.code:
        raise failure(finished.errors)
    language = _LANGUAGE.search((place / "go.mod").read_text())
    go_mod = pinned / name / "go.mod"
    if language:
        go_mod.write_text(_LANGUAGE.sub(language[0], go_mod.read_text(), count=1))
    (pinned / name / "go.sum").write_text((place / "go.sum").read_text())
