"""Schemas and printer columns of the built-in kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.apiserver.resources import Row


def dress(row: Row) -> Row:
    """The row with what is modelled of its schema and its columns; unchanged when nothing is."""
    return row
