"""Harvester versions, and the upgrades allowed between them.

The phases check it in pipeline/phases/eligibility.py, each node in toolkit/commands/version_guard.py.

The rules are exactly those of harvester/go-common's `version` package, because the toolkit applies them on every node.
Two of them are surprising: identifiers that mix letters and digits are compared as text, so rc10 precedes rc9; and a
prerelease is never newer than a release with build metadata.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import total_ordering

_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_SEMVER = re.compile(
    rf"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?", re.ASCII
)
_NUMBER = re.compile(r"[0-9]+", re.ASCII)
#: go-common uses uint64.
_MAX_NUMBER = 2**64 - 1
_MAX_DIGITS = len(str(_MAX_NUMBER))
#: Tag that go-common appends to a release when comparing a prerelease with it.
_LAST_TAG = "z"


class InvalidVersion(ValueError):
    """The text is empty or just `v`."""


class Incomparable(ValueError):
    """One of the versions is a development build, which has no order."""


@total_ordering
@dataclass(frozen=True, slots=True)
class _Identifier:
    """A dot-separated part of a prerelease tag; numbers precede text."""

    text: str

    @property
    def number(self) -> int | None:
        if not _NUMBER.fullmatch(self.text) or len(self.text) > _MAX_DIGITS:
            return None
        number = int(self.text)
        return number if number <= _MAX_NUMBER else None

    def __lt__(self, other: _Identifier) -> bool:
        mine, theirs = self.number, other.number
        if mine is not None and theirs is not None:
            return mine < theirs
        if mine is None and theirs is None:
            return self.text < other.text
        return mine is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A parsed version."""

    #: As written.
    raw: str
    #: Major, minor and patch; None for a development build (not a strict semantic version).
    core: tuple[int, int, int] | None
    #: Tag after the hyphen; empty for a release.
    prerelease: str = ""
    #: Metadata after the plus; never compared.
    build: str = ""

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parse a version with or without a leading `v`. Raises InvalidVersion."""
        bare = text.removeprefix("v")
        if not bare:
            raise InvalidVersion(f"{text!r} is not a version")
        match = _SEMVER.fullmatch(bare)
        if match is None or not _valid_numbers(match):
            return cls(raw=text, core=None)
        core = (int(match[1]), int(match[2]), int(match[3]))
        return cls(raw=text, core=core, prerelease=match[4] or "", build=match[5] or "")

    @property
    def is_dev(self) -> bool:
        """True for a development build, such as `master-1a2b3c4d` or `v1.7-head`."""
        return self.core is None

    @property
    def is_prerelease(self) -> bool:
        """True with a prerelease tag, such as `-rc1`, `-head` or `-dirty`."""
        return bool(self.prerelease)

    def __str__(self) -> str:
        """`v1.6.1-rc1`, always with the `v`; a development build as written."""
        if self.core is None:
            return self.raw
        tag = f"-{self.prerelease}" if self.prerelease else ""
        build = f"+{self.build}" if self.build else ""
        return "v{}.{}.{}".format(*self.core) + tag + build

    def equals(self, other: Version) -> bool:
        """Return True if both are equal apart from build metadata. Raises Incomparable if one is another dev build."""
        if self.core is None or other.core is None:
            if self.raw == other.raw:
                return True
            raise _incomparable(self, other)
        return self.core == other.core and self.prerelease == other.prerelease

    def newer_than(self, other: Version) -> bool:
        """Return True if this is newer than the other. Raises Incomparable if one is a development build."""
        if self.core is None or other.core is None:
            raise _incomparable(self, other)
        if not self.is_prerelease or other.is_prerelease:
            return _precedence(self.core, self.prerelease) > _precedence(other.core, other.prerelease)
        # go-common appends the tag to the text, where it becomes part of the build metadata.
        if other.build:
            return False
        return _precedence(self.core, self.prerelease) > _precedence(other.core, _LAST_TAG)

    def older_than(self, other: Version) -> bool:
        """Return True if this is older than the other. Raises Incomparable if one is a development build."""
        return not self.newer_than(other) and not self.equals(other)


def check_eligibility(current: str, target: str, minimum: str = "", *, strict: bool = True) -> str | None:
    """Return why an upgrade from `current` to `target` is not allowed, or None.

    `minimum` is the oldest version that supports the upgrade; empty or `v` means any. `strict` forbids upgrades from
    a development build to a release.
    """
    try:
        running, wanted = _parse("running", current), _parse("target", target)
    except InvalidVersion as error:
        return str(error)
    if wanted.is_dev:
        return None
    if running.is_dev:
        return _leaving_dev(running, wanted) if strict else None
    if running.equals(wanted):
        return None
    return _downgrade(running, wanted) or _below_minimum(running, minimum) or _leaving_prerelease(running, wanted)


def _parse(which: str, text: str) -> Version:
    try:
        return Version.parse(text)
    except InvalidVersion as error:
        raise InvalidVersion(f"{which} version {text!r} is invalid") from error


def _leaving_dev(running: Version, wanted: Version) -> str:
    return f"running version {running} is a development build: it can only be upgraded to another one, not to {wanted}"


def _downgrade(running: Version, wanted: Version) -> str | None:
    if not running.newer_than(wanted):
        return None
    return f"running version {running} is newer than {wanted}; downgrades are not supported"


def _below_minimum(running: Version, minimum: str) -> str | None:
    try:
        oldest = Version.parse(minimum)
    except InvalidVersion:
        return None
    if oldest.is_dev:
        return f"minimum version {oldest} is a development build; it cannot be compared with running version {running}"
    if not running.older_than(oldest):
        return None
    return f"running version {running} is too old for this release; upgrade to {oldest} or later first"


def _leaving_prerelease(running: Version, wanted: Version) -> str | None:
    if not running.is_prerelease or running.core == wanted.core:
        return None
    own = replace(running, prerelease="", build="")
    return f"running version {running} is a prerelease, which can only be upgraded to {own}, not to {wanted}"


def _precedence(core: tuple[int, int, int], prerelease: str) -> tuple[object, ...]:
    # A release follows its prereleases, and a tag follows its own prefixes.
    return (core, not prerelease, [_Identifier(part) for part in prerelease.split(".")])


def _valid_numbers(match: re.Match[str]) -> bool:
    if any(len(part) > _MAX_DIGITS or int(part) > _MAX_NUMBER for part in match.groups()[:3]):
        return False
    parts = (match[4] or "").split(".")
    return not any(len(part) > 1 and part[0] == "0" and _NUMBER.fullmatch(part) for part in parts)


def _incomparable(one: Version, other: Version) -> Incomparable:
    dev = one if one.is_dev else other
    return Incomparable(f"{one} and {other} cannot be compared: {dev} is a development build")
