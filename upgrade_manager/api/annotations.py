"""Annotations that users set on an UpgradePlan, as typed values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING

from upgrade_manager.api import keys
from upgrade_manager.api.image_name import ImageName, is_repository, without_tag_and_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_MIN_CERTS_DAYS = 7
#: Annotations that users set for the admission webhook; other values than "true" have no effect.
WEBHOOK_ANNOTATIONS = (
    keys.ANNOTATION_SKIP_WEBHOOK,
    keys.ANNOTATION_SKIP_DETACHED_VOLUMES,
    keys.ANNOTATION_ALLOW_DELETION,
)
#: Annotations that waive a check; to change one takes the verb `waive` (deploy/admission-policies).
WAIVER_ANNOTATIONS = (
    keys.ANNOTATION_SKIP_DISK_CHECK,
    keys.ANNOTATION_MIN_CERTS_DAYS,
    *WEBHOOK_ANNOTATIONS,
)
#: Annotations that choose the code of Jobs; to change one takes the verb `set-toolkit-image`.
TOOLKIT_ANNOTATIONS = (keys.ANNOTATION_TOOLKIT_IMAGE, keys.ANNOTATION_TOOLKIT_KIND)
#: Annotations that users set.
USER_ANNOTATIONS = (*WAIVER_ANNOTATIONS, *TOOLKIT_ANNOTATIONS, keys.ANNOTATION_CONTINUE)
#: Unknown annotations that are reported; a comparison of thousands with the known ones would take seconds.
MAX_UNKNOWN = 20

#: As Go's strconv.ParseBool, with which Harvester reads this annotation.
_GO_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_GO_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
#: A positive integer that fits 64 bits.
_DAYS = re.compile(r"\+?0*([1-9][0-9]{0,17})", re.ASCII)


class Flag(Enum):
    """A boolean annotation."""

    ABSENT = "absent"
    TRUE = "true"
    FALSE = "false"
    #: Neither true nor false.
    BAD = "bad"

    def __bool__(self) -> bool:
        """Return True for TRUE only."""
        return self is Flag.TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class BadAnnotation:
    """An annotation with an invalid value."""

    key: str
    value: str
    #: Valid values, as text after "Set it to".
    expected: str

    def __str__(self) -> str:
        """Return a message for users."""
        shown = self.value if len(self.value) <= _MAX_SHOWN else self.value[:_MAX_SHOWN] + "…"
        return f"Annotation {self.key} is {shown!r}. Set it to {self.expected}"


_MAX_SHOWN = 80


@dataclass(frozen=True, slots=True)
class PlanAnnotations:
    """Typed view of a plan's annotations; reading never fails."""

    raw: Mapping[str, str]

    @property
    def skip_disk_check(self) -> Flag:
        """The flag that skips the disk space check; BAD fails the check with `bad_flag`'s message."""
        value = self.raw.get(keys.ANNOTATION_SKIP_DISK_CHECK)
        if value is None:
            return Flag.ABSENT
        if value in _GO_TRUE:
            return Flag.TRUE
        return Flag.FALSE if value in _GO_FALSE else Flag.BAD

    @property
    def min_certs_days(self) -> int | BadAnnotation:
        """Days for which the API server certificates must remain valid; 7 by default."""
        key = keys.ANNOTATION_MIN_CERTS_DAYS
        value = self.raw.get(key)
        if value is None:
            return DEFAULT_MIN_CERTS_DAYS
        match = _DAYS.fullmatch(value)
        if match is None:
            return BadAnnotation(key=key, value=value, expected="a whole number of days greater than 0")
        return int(match[1])

    @property
    def toolkit_image(self) -> ImageName | BadAnnotation | None:
        """The toolkit image, without a tag; None for the configured one."""
        key = keys.ANNOTATION_TOOLKIT_IMAGE
        value = self.raw.get(key)
        if value is None:
            return None
        expected = "REPOSITORY or REPOSITORY@sha256:DIGEST of a container image; a tag belongs in spec.upgrade"
        return ImageName.parse(value.strip()) or BadAnnotation(key=key, value=value, expected=expected)

    @property
    def toolkit_kind(self) -> keys.ToolkitKind | BadAnnotation | None:
        """The kind of the toolkit image; None for the configured one."""
        key = keys.ANNOTATION_TOOLKIT_KIND
        value = self.raw.get(key)
        if value is None:
            return None
        try:
            return keys.ToolkitKind(value)
        except ValueError:
            return BadAnnotation(key=key, value=value, expected=" or ".join(keys.ToolkitKind))

    @property
    def toolkit_repository(self) -> str | BadAnnotation:
        """The toolkit's repository as version 0.1 of the manager reads it: a tag or digest is dropped."""
        key = keys.ANNOTATION_TOOLKIT_IMAGE
        value = self.raw.get(key, keys.DEFAULT_TOOLKIT_IMAGE)
        repository = without_tag_and_digest(value.strip())
        if not is_repository(repository):
            return BadAnnotation(key=key, value=value, expected="the repository and name of a container image")
        return repository

    @property
    def created_by(self) -> str:
        """The user who created the plan; empty where admission has not recorded one."""
        return self.raw.get(keys.ANNOTATION_CREATED_BY, "")

    @property
    def skip_detached_volumes(self) -> bool:
        """True if detached volumes with a single replica are accepted."""
        return self.raw.get(keys.ANNOTATION_SKIP_DETACHED_VOLUMES) == "true"

    @property
    def unknown(self) -> dict[str, str]:
        """Keys under the manager's prefix that it does not know, with the nearest known key; the first MAX_UNKNOWN."""
        known = {*USER_ANNOTATIONS, *keys.ADMISSION_ANNOTATIONS, *keys.MANAGER_ANNOTATIONS}
        unknown = sorted(key for key in self.raw if key.startswith(f"{keys.PREFIX}/") and key not in known)
        return {key: get_close_matches(key, USER_ANNOTATIONS, n=1, cutoff=0)[0] for key in unknown[:MAX_UNKNOWN]}

    @property
    def unknown_messages(self) -> dict[str, str]:
        """The messages about unknown keys, by key."""
        return {
            key: f"Annotation {key} is unknown and ignored. The nearest known annotation is {nearest}"
            for key, nearest in self.unknown.items()
        }

    @property
    def invalid(self) -> list[BadAnnotation]:
        """The invalid values that fail the plan, without those about the toolkit image (toolkit_image.py)."""
        days = self.min_certs_days
        flags = [self.bad_flag(keys.ANNOTATION_SKIP_DISK_CHECK)] if self.skip_disk_check is Flag.BAD else []
        return [*flags, *([days] if isinstance(days, BadAnnotation) else [])]

    @property
    def without_effect(self) -> list[BadAnnotation]:
        """The webhook's flags that are neither true nor false."""
        return [
            self.bad_flag(key) for key in WEBHOOK_ANNOTATIONS if self.raw.get(key, "false") not in {"true", "false"}
        ]

    def bad_flag(self, key: str) -> BadAnnotation:
        """Return the error of a flag that is BAD."""
        return BadAnnotation(key=key, value=self.raw.get(key, ""), expected='"true" or "false"')
