"""The admission stages that know schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row


def shape(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Unknown fields (fieldValidation), pruning and defaulting; a mutating stage."""
    _ = (row, old, operation, options)
    return new


def validate(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Structural schema and CEL rules; a validating stage. Raises StatusError 422."""
    _ = (row, old, operation, options)
    return new
