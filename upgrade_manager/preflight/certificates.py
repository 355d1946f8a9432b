"""Validity of certificates: read from DER, combined over a chain, compared with the days that are required.

certificate_probe.py reads them, check.py compares them.

The parser reads only the two dates (X.690, RFC 5280 4.1), to avoid importing a cryptography library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAY = 24 * 3600
_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
#: Fields between the version and the dates: serial number, signature algorithm and issuer.
_FIELDS_BEFORE_DATES = 3
_LONG_FORM = 0x80
_MAX_LENGTH_BYTES = 4
#: RFC 5280 4.1.2.5: with seconds, in UTC.
_DATE = {
    _UTC_TIME: re.compile(rb"(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z"),
    _GENERALIZED_TIME: re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z"),
}
#: RFC 5280 4.1.2.5.1: two-digit years from here on belong to the 20th century.
_CENTURY_TURN = 50


class DerError(ValueError):
    """The bytes are not a certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The period in which a certificate or a chain is valid; both ends included."""

    not_before: datetime
    not_after: datetime

    def seconds_left(self, now: datetime) -> int:
        """Whole seconds until it expires; negative afterwards."""
        return (self.not_after - now) // timedelta(seconds=1)

    def outlasts(self, *, days: int, now: datetime) -> bool:
        """Return True if it is valid for at least that many days."""
        return self.seconds_left(now) >= days * _DAY

    def expiry(self, now: datetime) -> str:
        """Describe the expiry, as in `in 4 days, 2026-01-05T00:00:00Z`."""
        left, when = self.seconds_left(now), format_time(self.not_after)
        if left < 0:
            return f"expired {when}"
        days = left // _DAY
        return f"in {'less than a day' if not days else '1 day' if days == 1 else f'{days} days'}, {when}"


def chain_validity(chain: Sequence[Validity]) -> Validity:
    """Return the period in which every certificate of a chain is valid; a client may need any of them."""
    return Validity(
        not_before=max(certificate.not_before for certificate in chain),
        not_after=min(certificate.not_after for certificate in chain),
    )


def validity_of(certificate: bytes) -> Validity:
    """Parse the validity of a DER certificate. Raises DerError."""
    whole = _Reader(certificate).enter(_SEQUENCE)
    signed = _Reader(whole).enter(_SEQUENCE)
    fields = _Reader(signed)
    if fields.tag == _VERSION:
        fields.skip()
    for _ in range(_FIELDS_BEFORE_DATES):
        fields.skip()
    dates = _Reader(fields.enter(_SEQUENCE))
    not_before = _date(dates.tag, dates.enter(dates.tag))
    return Validity(not_before=not_before, not_after=_date(dates.tag, dates.enter(dates.tag)))


class _Reader:
    """Reads the values of one DER level in sequence."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def tag(self) -> int:
        """Tag of the next value."""
        return self._byte(self._at)

    def enter(self, tag: int) -> bytes:
        """Return the content of the next value, which must have that tag."""
        if self.tag != tag:
            raise DerError(f"tag {self.tag:#x} instead of {tag:#x}")
        start, end = self._extent()
        self._at = end
        return self._content[start:end]

    def skip(self) -> None:
        """Skip the next value."""
        _, self._at = self._extent()

    def _extent(self) -> tuple[int, int]:
        start, length = self._at + 2, self._byte(self._at + 1)
        if length >= _LONG_FORM:
            size = length - _LONG_FORM
            if not 0 < size <= _MAX_LENGTH_BYTES:
                raise DerError(f"a length of {size} bytes")
            length = int.from_bytes(self._content[start : start + size], "big")
            start += size
        if start + length > len(self._content):
            raise DerError("truncated")
        return start, start + length

    def _byte(self, index: int) -> int:
        if index >= len(self._content):
            raise DerError("truncated")
        return self._content[index]


def _date(tag: int, content: bytes) -> datetime:
    pattern = _DATE.get(tag)
    match = pattern.fullmatch(content) if pattern else None
    if match is None:
        raise DerError("invalid date")
    year, month, day, hour, minute, second = (int(group) for group in match.groups())
    if tag == _UTC_TIME:
        year += 1900 if year >= _CENTURY_TURN else 2000
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise DerError("invalid date") from error
