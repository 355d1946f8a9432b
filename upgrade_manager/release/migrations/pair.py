"""A pair of releases, with the degree to which its steps are known; pairs.py has the table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from upgrade_manager.release.version import InvalidVersion, Version

if TYPE_CHECKING:
    from upgrade_manager.release.migrations.row import Row

#: Major and minor number, such as (1, 8). A prerelease counts as its release.
Minor: TypeAlias = tuple[int, int]


class Standing(Enum):
    """The degree to which the steps of a pair are known."""

    KNOWN = "known"
    #: The newer release is not final, and its steps may still change.
    PROVISIONAL = "provisional"
    #: The steps are known, and cannot be carried out safely.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An upgrade from one minor release to another, or within one."""

    current: Minor
    target: Minor
    standing: Standing
    #: Of a pair that is not known: the reason, a clause. Of each pair: its source.
    reason: str = ""
    #: The changes that belong to this pair alone.
    rows: tuple[Row, ...] = ()

    def __str__(self) -> str:
        """`v1.7 to v1.8`, or `within v1.8`."""
        return f"within {named(self.target)}" if self.current == self.target else _between(self.current, self.target)


def minor_of(version: str) -> Minor | None:
    """Return major and minor number; None for a development build or no version."""
    try:
        core = Version.parse(version).core
    except InvalidVersion:
        return None
    return None if core is None else core[:2]


def named(minor: Minor) -> str:
    """Return `v1.8`."""
    return "v{}.{}".format(*minor)


def _between(current: Minor, target: Minor) -> str:
    return f"{named(current)} to {named(target)}"
