"""Warning headers, code 299."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def warning_header(warnings: Sequence[str]) -> dict[str, str]:
    """Return the header of warnings, if there are any."""
    texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings]
    return {"warning": ", ".join(f'299 - "{text}"' for text in texts)} if texts else {}
