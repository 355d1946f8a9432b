"""Kubernetes quantities, such as the memory of a VM; facts/migrations.py reads them."""

from __future__ import annotations

import math
import re

_QUANTITY = re.compile(r"(?P<number>[0-9]{1,20}(\.[0-9]{1,20})?)(?P<suffix>m|[kMGTPE]|[KMGTPE]i)?", re.ASCII)
_POWERS = {prefix: power for power, prefix in enumerate("KMGTPE", 1)}


def read_quantity(text: str) -> float | None:
    """Return the number that the quantity stands for; None for another text, also with an exponent."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        return None
    suffix = found["suffix"] or ""
    if suffix == "m":
        return float(found["number"]) / 1000
    base = 1024.0 if suffix.endswith("i") else 1000.0
    return float(found["number"]) * math.pow(base, _POWERS.get(suffix[:1].upper(), 0))
