"""Go modules: what go.mod files of a build say, how content gets here, and what a failure means to the user."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.control_plane.disk import FULL
from hack.control_plane.errors import ProvisionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.control_plane.pins import Module
    from hack.control_plane.toolchain import Go

_BARE = "module harvester-upgrade-manager.local/hack/control_plane/downloads\n\ngo 1.25\n"
#: A staging module as Kubernetes' own go.mod requires it.
_STAGING = re.compile(r"^\s+(k8s\.io/[a-z-]+) v0\.0\.0$", re.MULTILINE)
#: What Go prints about its work.
_CHATTER = re.compile(r"^go: (downloading|finding|extracting) ")
#: User and password in a URL.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")


class DiskFull(Exception):
    """Go or the kernel found no space; which folders are meant is known further out."""


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A module in Go's module cache."""

    folder: Path
    go_mod: Path
    #: Of its content, as a go.sum has it.
    sum: str


def download(go: Go, modules: Iterable[Module], *, sums: str, work: Path) -> dict[str, Downloaded]:
    """Each module by its path, with content that `sums`, the text of a go.sum, vouches for.

    Works in a module of its own without requirements, since the graph of those of Kubernetes does not load without
    replacements. What `sums` does not name is vouched for by Go's checksum database.
    """
    place = work / "downloads"
    place.mkdir(exist_ok=True)
    (place / "go.mod").write_text(_BARE)
    (place / "go.sum").write_text(sums)
    finished = go.run("mod", "download", "-json", *(f"{m.path}@{m.version}" for m in modules), cwd=place)
    found = list(_documents(finished.output))
    if finished.code:
        reasons = [document["Error"] for document in found if document.get("Error")]
        raise failure("\n".join(reasons) or finished.errors)
    return {one["Path"]: Downloaded(Path(one["Dir"]), Path(one["GoMod"]), one["Sum"]) for one in found}


def with_replacements(go_mod: str, kubernetes: Module, its_go_mod: str) -> str:
    """Our go.mod that requires Kubernetes, and a replacement for each of its staging modules.

    Kubernetes requires them at v0.0.0, which does not exist: v1.35.4 of it goes with v0.35.4 of them.
    """
    version = kubernetes.version.replace("v1.", "v0.", 1)
    lines = [f"replace {path} => {path} {version}" for path in dict.fromkeys(_STAGING.findall(its_go_mod))]
    return "\n".join([go_mod, *lines, ""])


def failure(errors: str) -> ProvisionError | DiskFull:
    """What it means that modules could not be had, from what Go says about it."""
    if FULL in errors:
        return DiskFull()
    reason = shortened(errors)
    if "checksum mismatch" in errors:
        return ProvisionError(
            f"{reason}: the content is not what hack/control_plane/go pins, and was not used; where it came from is "
            "what GOPROXY says (`go env GOPROXY`), and `go clean -modcache` makes Go fetch all anew"
        )
    if "missing go.sum entry" in errors:
        return ProvisionError(
            f"{reason}: `python -m hack.control_plane --lock` brings hack/control_plane/go up to date with the go.mod"
        )
    return ProvisionError(
        f"{reason}: a Go module cannot be had; see that `go env GOPROXY` names a proxy which this machine reaches, "
        "then try again"
    )


def shortened(errors: str) -> str:
    """The first line that is no chatter of Go's, without credentials and at a length that one reads."""
    lines = [line.strip() for line in errors.splitlines() if line.strip() and not _CHATTER.match(line)]
    line = lines[0] if lines else "go gave no reason"
    return _CREDENTIALS.sub("", line).removeprefix("go: ")[:300].rstrip(":")


def _documents(text: str) -> Iterable[dict[str, str]]:
    """Go prints one JSON object after another."""
    decoder = json.JSONDecoder()
    text = text.strip()
    while text:
        document, end = decoder.raw_decode(text)
        yield document
        text = text[end:].strip()
