"""Warnings as clients get them: one header, code 299."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def warning_header(warnings: Sequence[str]) -> dict[str, str]:
    """The header, if there is anything to warn of."""
    texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings]
    return {"warning": ", ".join(f'299 - "{text}"' for text in texts)} if texts else {}
