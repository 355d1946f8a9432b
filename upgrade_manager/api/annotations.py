"""What users set on a plan by annotation, as typed values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from upgrade_manager.api import keys

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_MIN_CERTS_DAYS = 7

#: What Go's strconv.ParseBool takes; the disk check's annotation is read so by the built-in flow as well.
_GO_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_GO_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
#: A positive integer that fits into 64 bits.
_DAYS = re.compile(r"\+?0*([1-9][0-9]{0,17})", re.ASCII)
_REPOSITORY = re.compile(
    r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*",
    re.ASCII,
)
_MAX_REPOSITORY = 255


class Flag(Enum):
    """An annotation that switches something on."""

    ABSENT = "absent"
    TRUE = "true"
    FALSE = "false"
    #: There, but neither true nor false.
    BAD = "bad"

    def __bool__(self) -> bool:
        """Whether it is switched on: only TRUE is."""
        return self is Flag.TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class BadAnnotation:
    """An annotation whose value cannot be used."""

    key: str
    value: str
    #: What would be right, to be read after "must be".
    expected: str

    def __str__(self) -> str:
        """One sentence that names the annotation, its value and what to set instead."""
        shown = self.value if len(self.value) <= _SHOWN else self.value[:_SHOWN] + "…"
        return f"Annotation {self.key} is {shown!r}; must be {self.expected}"


_SHOWN = 80


@dataclass(frozen=True, slots=True)
class PlanAnnotations:
    """A typed view of a plan's annotations; reading never fails."""

    raw: Mapping[str, str]

    @property
    def skip_webhook(self) -> Flag:
        """No validation at creation."""
        return self._exact(keys.ANNOTATION_SKIP_WEBHOOK)

    @property
    def skip_single_replica_detached(self) -> Flag:
        """Detached Longhorn volumes of a single replica are no obstacle."""
        return self._exact(keys.ANNOTATION_SKIP_SINGLE_REPLICA_DETACHED)

    @property
    def allow_deletion(self) -> Flag:
        """The plan may be deleted while it is in progress."""
        return self._exact(keys.ANNOTATION_ALLOW_DELETION)

    @property
    def skip_disk_check(self) -> Flag:
        """No check of disk space before the upgrade; BAD fails that check, with `bad_flag`'s sentence."""
        value = self.raw.get(keys.ANNOTATION_SKIP_DISK_CHECK)
        if value is None:
            return Flag.ABSENT
        if value in _GO_TRUE:
            return Flag.TRUE
        return Flag.FALSE if value in _GO_FALSE else Flag.BAD

    @property
    def min_certs_days(self) -> int | BadAnnotation:
        """Days for which the API server's certificates must still be valid; 7 where nothing is said."""
        key = keys.ANNOTATION_MIN_CERTS_DAYS
        value = self.raw.get(key)
        if value is None:
            return DEFAULT_MIN_CERTS_DAYS
        match = _DAYS.fullmatch(value)
        if match is None:
            return BadAnnotation(key=key, value=value, expected="a whole number of days greater than 0")
        return int(match[1])

    @property
    def toolkit_image(self) -> str | BadAnnotation:
        """Repository and name of the toolkit's image, without a tag: one in the annotation is not used."""
        key = keys.ANNOTATION_TOOLKIT_IMAGE
        value = self.raw.get(key)
        if value is None:
            return keys.DEFAULT_TOOLKIT_IMAGE
        repository = _without_tag(value.strip())
        if len(repository) > _MAX_REPOSITORY or not _REPOSITORY.fullmatch(repository):
            return BadAnnotation(key=key, value=value, expected="the repository and name of a container image")
        return repository

    @property
    def replenishment_interval(self) -> str | None:
        """Longhorn's value before the upgrade, kept by the manager; None where nothing was changed."""
        return self.raw.get(keys.ANNOTATION_REPLENISHMENT_INTERVAL)

    @property
    def descheduler_was_enabled(self) -> bool:
        """Whether the manager switched the descheduler off, and has to switch it on again."""
        return self.raw.get(keys.ANNOTATION_DESCHEDULER_WAS_ENABLED) == "true"

    def bad_flag(self, key: str) -> BadAnnotation:
        """For messages about a flag that reads BAD."""
        return BadAnnotation(key=key, value=self.raw.get(key, ""), expected='"true" or "false"')

    def _exact(self, key: str) -> Flag:
        # These take safety away, so only the documented spelling does it.
        value = self.raw.get(key)
        if value is None:
            return Flag.ABSENT
        return {"true": Flag.TRUE, "false": Flag.FALSE}.get(value, Flag.BAD)


def _without_tag(reference: str) -> str:
    name = reference.partition("@")[0]
    path, slash, last = name.rpartition("/")
    return path + slash + last.partition(":")[0]
