"""Names of container images without a tag, and prefixes that limit them.

`annotations` and the flags of `cli.toolkit_image_options` parse them; `toolkit_image` decides which an upgrade uses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_HOST = r"[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
_PATH = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
_REPOSITORY = re.compile(rf"(?:{_HOST}/)?{_PATH}", re.ASCII)
_REGISTRY = re.compile(_HOST, re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
MAX_REPOSITORY = 255
#: Hexadecimal digits of a digest in a version of a Plan of the system-upgrade-controller.
_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageName:
    """A repository, and the digest of the image in it where one is given."""

    repository: str
    #: `sha256:` and 64 hexadecimal digits, or empty.
    digest: str = ""

    def __str__(self) -> str:
        """Return `REPOSITORY` or `REPOSITORY@DIGEST`."""
        return f"{self.repository}@{self.digest}" if self.digest else self.repository

    @classmethod
    def parse(cls, text: str) -> ImageName | None:
        """Return the image of `REPOSITORY` or `REPOSITORY@sha256:DIGEST`; None for anything else, such as a tag."""
        repository, separator, digest = text.partition("@")
        if not is_repository(repository) or (separator and not _DIGEST.fullmatch(digest)):
            return None
        return cls(repository=repository, digest=digest)


def is_repository(text: str) -> bool:
    """Return True for a repository, with or without its registry."""
    return len(text) <= MAX_REPOSITORY and _REPOSITORY.fullmatch(text) is not None


def is_tag(text: str) -> bool:
    """Return True for a tag that registries accept."""
    return _TAG.fullmatch(text) is not None


def is_prefix(text: str) -> bool:
    """Return True for what may limit repositories: a registry, a part of a repository's path, or all of it."""
    return is_repository(text) or (len(text) <= MAX_REPOSITORY and _REGISTRY.fullmatch(text) is not None)


def without_tag_and_digest(reference: str) -> str:
    """Return the repository of a reference."""
    name = reference.partition("@")[0]
    path, slash, last = name.rpartition("/")
    return path + slash + last.partition(":")[0]


def is_allowed(repository: str, prefixes: Iterable[str]) -> bool:
    """Return True if a prefix matches the whole repository, or up to a following `/`, `:` or `@`."""
    return any(repository == one or repository.startswith((f"{one}/", f"{one}:", f"{one}@")) for one in prefixes)


def digest_version(digest: str) -> str:
    """Return the version of a Plan whose image has that digest: valid as a label value."""
    return digest.replace(":", "-", 1)[: len("sha256-") + _SHORT]
