"""The two dates of a certificate, read from its DER (X.690, RFC 5280 4.1) without a library that takes megabytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
#: Serial number, signature algorithm and issuer stand between the version and the dates.
_BEFORE_DATES = 3
_LONG_FORM = 0x80
_LONGEST = 4
#: RFC 5280 4.1.2.5: seconds are there, and Z.
_DATE = {
    _UTC_TIME: re.compile(rb"(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z"),
    _GENERALIZED_TIME: re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z"),
}
#: RFC 5280 4.1.2.5.1: two digits from here on are of the last century.
_CENTURY_TURN = 50


class DerError(ValueError):
    """These bytes are no certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """From when and until when a certificate, or all of a chain, is valid; both ends included."""

    not_before: datetime
    not_after: datetime


def validity_of(certificate: bytes) -> Validity:
    """The certificate's. Raises DerError."""
    whole = _Reader(certificate).enter(_SEQUENCE)
    signed = _Reader(whole).enter(_SEQUENCE)
    fields = _Reader(signed)
    if fields.tag == _VERSION:
        fields.skip()
    for _ in range(_BEFORE_DATES):
        fields.skip()
    dates = _Reader(fields.enter(_SEQUENCE))
    not_before = _date(dates.tag, dates.enter(dates.tag))
    return Validity(not_before=not_before, not_after=_date(dates.tag, dates.enter(dates.tag)))


class _Reader:
    """Values of one level, one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def tag(self) -> int:
        """Of the next value."""
        return self._byte(self._at)

    def enter(self, tag: int) -> bytes:
        """The next value's content; it must have that tag."""
        if self.tag != tag:
            raise DerError(f"tag {self.tag:#x} instead of {tag:#x}")
        start, end = self._extent()
        self._at = end
        return self._content[start:end]

    def skip(self) -> None:
        """Pass over the next value."""
        _, self._at = self._extent()

    def _extent(self) -> tuple[int, int]:
        start, length = self._at + 2, self._byte(self._at + 1)
        if length >= _LONG_FORM:
            size = length - _LONG_FORM
            if not 0 < size <= _LONGEST:
                raise DerError(f"a length of {size} bytes")
            length = int.from_bytes(self._content[start : start + size], "big")
            start += size
        if start + length > len(self._content):
            raise DerError("cut off")
        return start, start + length

    def _byte(self, index: int) -> int:
        if index >= len(self._content):
            raise DerError("cut off")
        return self._content[index]


def _date(tag: int, content: bytes) -> datetime:
    pattern = _DATE.get(tag)
    match = pattern.fullmatch(content) if pattern else None
    if match is None:
        raise DerError("no date where one must be")
    year, month, day, hour, minute, second = (int(group) for group in match.groups())
    if tag == _UTC_TIME:
        year += 1900 if year >= _CENTURY_TURN else 2000
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise DerError("no date where one must be") from error
