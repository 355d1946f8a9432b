"""Image lists of releases: what only the previous one needs may go."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Bytes of one list; a real one has about 20 kB.
SIZE_LIMIT = 8 * 1024 * 1024
#: Of compression: more takes several times as long and saves next to nothing.
_LEVEL = 6
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
    """The references, the first word of each line; blank lines, comments and what is no reference are passed over."""
    text = body.decode("utf-8-sig", errors="replace")
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [words[0] for words in lines if words and _REFERENCE.fullmatch(words[0])]


def removable(previous: Iterable[str], current: Iterable[str]) -> list[str]:
    """What the previous release needed, the current one does not, and nothing else may need; sorted, each once."""
    needed = {key for reference in current for key in identities(reference)}
    return sorted(
        {
            reference
            for reference in previous
            if needed.isdisjoint(identities(reference)) and repository_name(reference) not in RETAINED
        }
    )


def identities(reference: str) -> set[str]:
    """What the reference can be found under on a node: by tag, by digest, or by both where it has both.

    Two references that share one of them may be one image there, and removing it by either removes it altogether.
    """
    name, _, digest = canonical(reference).partition("@")
    head, slash, last = name.rpartition("/")
    repository, _, tag = last.partition(":")
    by_digest = {f"{head}{slash}{repository}@{digest}"} if digest else set()
    by_tag = {f"{head}{slash}{repository}:{tag or 'latest'}"} if tag or not digest else set()
    return by_tag | by_digest


def canonical(reference: str) -> str:
    """The reference with the registry that containerd adds where none is named."""
    first, slash, rest = reference.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = "docker.io", reference
    if first in {"docker.io", "index.docker.io"}:
        return f"docker.io/{rest}" if "/" in rest.partition("@")[0] else f"docker.io/library/{rest}"
    return reference


def repository_name(reference: str) -> str:
    """The last part of the path, without tag and digest."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[0]


def pack(references: Iterable[str]) -> bytes:
    """A list for the nodes, gzipped: the same bytes for the same list."""
    return gzip.compress("".join(f"{reference}\n" for reference in references).encode(), _LEVEL, mtime=0)
