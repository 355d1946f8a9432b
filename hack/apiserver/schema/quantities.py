"""Parsing and canonical formatting of resource quantities."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

_TEXT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([KMGTPE]i|[numkMGTPE]?)")
_FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
#: The index of the empty suffix.
_ONE = 3


class QuantityError(ValueError):
    """The text is not a quantity."""


@lru_cache(maxsize=1024)
def canonical(text: str) -> str:
    """Return the quantity with the largest suffix without a fraction; exponents stay. Raises QuantityError."""
    match = _TEXT.fullmatch(text)
    if match is None:
        if re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+", text):
            return text
        raise QuantityError(f"quantities must match the regular expression '{_FORM}'")
    number, suffix = Decimal(match[1]), match[2]
    if suffix.endswith("i"):
        return _written(number * 1024 ** _BINARY.index(suffix), 1024, _BINARY, 0)
    return _written(number * Decimal(1000) ** (_DECIMAL.index(suffix) - _ONE) * Decimal(10) ** 9, 1000, _DECIMAL, 0)


def _written(amount: Decimal, base: int, suffixes: tuple[str, ...], place: int) -> str:
    whole = int(amount.to_integral_value(rounding="ROUND_CEILING"))
    if whole == 0:
        return "0"
    while place + 1 < len(suffixes) and whole % base == 0:
        whole //= base
        place += 1
    return f"{whole}{suffixes[place]}"
