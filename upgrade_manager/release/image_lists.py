"""Image lists of releases, and the images that only the previous release needs."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Bytes of one list; a real one has about 20 kB.
SIZE_LIMIT = 8 * 1024 * 1024
#: The gzip level; higher ones take several times as long and save next to nothing.
_LEVEL = 6
#: Repository names of images that running volumes and log collectors may still need.
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
#: Starts with a letter or digit, so that no command takes it for an option.
_REFERENCE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._:/@-]{0,511}", re.ASCII)


def parse_list(body: bytes) -> list[str]:
    """Return the first word of each line that is a valid reference; other lines and comments are skipped."""
    text = body.decode("utf-8-sig", errors="replace")
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [words[0] for words in lines if words and _REFERENCE.fullmatch(words[0])]


def removable(previous: Iterable[str], current: Iterable[str]) -> list[str]:
    """Return the images that only the previous release needs, sorted, without `RETAINED` ones."""
    needed = {key for reference in current for key in identities(reference)}
    return sorted(
        {
            reference
            for reference in previous
            if needed.isdisjoint(identities(reference)) and repository_name(reference) not in RETAINED
        }
    )


def identities(reference: str) -> set[str]:
    """Return the names of the image on a node: by tag, by digest, or both.

    References that share a name may be the same image, which is removed under all its names at once.
    """
    name, _, digest = canonical(reference).partition("@")
    head, slash, last = name.rpartition("/")
    repository, _, tag = last.partition(":")
    by_digest = {f"{head}{slash}{repository}@{digest}"} if digest else set()
    by_tag = {f"{head}{slash}{repository}:{tag or 'latest'}"} if tag or not digest else set()
    return by_tag | by_digest


def canonical(reference: str) -> str:
    """Add the registry that containerd assumes."""
    first, slash, rest = reference.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = "docker.io", reference
    if first in {"docker.io", "index.docker.io"}:
        return f"docker.io/{rest}" if "/" in rest.partition("@")[0] else f"docker.io/library/{rest}"
    return reference


def repository_name(reference: str) -> str:
    """Return the last part of the path, without tag and digest."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[0]


def pack(references: Iterable[str]) -> bytes:
    """Compress a list for the nodes, deterministically."""
    return gzip.compress("".join(f"{reference}\n" for reference in references).encode(), _LEVEL, mtime=0)
