"""Image lists of releases: what only the previous one needs may go."""

from __future__ import annotations

import base64
import gzip
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Bytes of one list; a real one has about 20 kB.
SIZE_LIMIT = 8 * 1024 * 1024
#: By the last part of their path, images that running volumes and log collectors may still need.
RETAINED = frozenset(
    {
        "harvester-upgrade",
        "harvester-upgrade-toolkit",
        "longhorn-engine",
        "longhorn-instance-manager",
        "mirrored-banzaicloud-fluentd",
        "mirrored-fluent-fluent-bit",
    }
)
#: Registry, path, tag and digest. Begins with a letter or digit, so it is never taken for an option.
_REFERENCE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._:/@-]{0,511}", re.ASCII)


def parse_list(body: bytes) -> list[str]:
    """The references, one a line; blank lines, comments and what is no reference are passed over."""
    lines = (line.strip() for line in body.decode(errors="replace").splitlines())
    return [line for line in lines if _REFERENCE.fullmatch(line)]


def removable(previous: Iterable[str], current: Iterable[str]) -> list[str]:
    """What the previous release needed, the current one does not, and nothing else may need; sorted, each once."""
    needed = {canonical(reference) for reference in current}
    return sorted(
        {
            reference
            for reference in previous
            if canonical(reference) not in needed and repository_name(reference) not in RETAINED
        }
    )


def canonical(reference: str) -> str:
    """The reference with the registry that containerd adds where none is named."""
    first, slash, rest = reference.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return reference if "/" in rest or first != "docker.io" else f"{first}/library/{rest}"
    return f"docker.io/{reference}" if slash else f"docker.io/library/{reference}"


def repository_name(reference: str) -> str:
    """The last part of the path, without tag and digest."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[0]


def compress(references: Iterable[str]) -> str:
    """A list for the nodes: gzip in base64, the same bytes for the same list."""
    text = "".join(f"{reference}\n" for reference in references)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
