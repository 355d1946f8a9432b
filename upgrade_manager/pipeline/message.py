from __future__ import annotations

import re

#: Characters of a condition's message; the rest of a longer one helps nobody.
LIMIT = 1000
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\u00a0-\ud7ff\ue000-\ufffd]+")


def sentence(text: str) -> str:
    """Make any text fit for a condition or an event: one line, printable, of bounded length."""
    line = _UNPRINTABLE.sub(" ", text).strip()
    return line if len(line) <= LIMIT else line[: LIMIT - 1] + "…"
