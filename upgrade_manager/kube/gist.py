"""What stays the same of a message that is said again: the numbers that chance puts into it are left out.

For whoever counts repetitions. A number that belongs to a name or to a version (`node-1`, `10.0.0.1`, `v1.8.0`) is no
chance; a duration, an ephemeral port, a uid, an address in memory, a time of day is.
"""

from __future__ import annotations

import re

_CHANCE = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b0x[0-9a-f]+\b"
    # Go's durations (1m30.5s) and plain numbers, also with a unit; nothing that goes on to either side.
    # Possessive, for a message of many digits must not take long.
    r"|(?<![\w.-])(?:\d++(?:\.\d++)?+(?:[KMGT]i?B|[a-zµ]{1,2})?+)++(?![\w-]|\.\w)",
    re.IGNORECASE | re.ASCII,
)


def gist(message: str) -> str:
    """The message with a # for whatever may be different the next time."""
    return _CHANCE.sub("#", message)
