"""Errors about one field of an object, after apimachinery's `field.Error`.

kubectl shows `details.causes` one by one ("The UpgradePlan "x" is invalid: ..."), scripts match on their reasons.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ErrorType(Enum):
    """The type of an error: the cause's reason, and the beginning of its message."""

    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")

    @property
    def reason(self) -> str:
        """The reason in `details.causes[]`."""
        return self.value[0]

    @property
    def title(self) -> str:
        """The beginning of the message."""
        return self.value[1]


class Omitted:
    """Placeholder for a value that the message omits."""


OMITTED = Omitted()

#: The message for a feature that only a real API server has.
UNOFFERED = "not offered by the embedded API server"

#: Types whose message never shows the value.
_SILENT = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG})

#: CEL rules are skipped after one of these errors, as they rely on the schema.
BLOCKING = frozenset(
    {ErrorType.NOT_SUPPORTED, ErrorType.REQUIRED, ErrorType.TOO_LONG, ErrorType.TOO_MANY, ErrorType.TYPE_INVALID}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One error about one field."""

    error_type: ErrorType
    #: Dotted path, `spec.pauseNodes[0]`; empty for the whole object.
    field: str
    value: Any = OMITTED
    detail: str = ""

    @property
    def body(self) -> str:
        """Return the message without the field."""
        text = self.error_type.title
        if self.error_type not in _SILENT and not isinstance(self.value, Omitted):
            text += ": " + go_value(self.value)
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field or '<nil>'}: {self.body}"

    def cause(self) -> dict[str, str]:
        """Return the entry for `details.causes` of a Status."""
        return {"reason": self.error_type.reason, "message": self.body, "field": self.field or "<nil>"}


def go_value(value: Any) -> str:
    """Format a value like Go: strings quoted, objects and lists as compact JSON."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def required(field: str, detail: str = "") -> FieldError:
    """Return the error for a missing field."""
    return FieldError(error_type=ErrorType.REQUIRED, field=field, detail=detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return the error for a value that breaks a rule."""
    return FieldError(error_type=ErrorType.INVALID, field=field, value=value, detail=detail)


def forbidden(field: str, detail: str) -> FieldError:
    """Return the error for a forbidden value."""
    return FieldError(error_type=ErrorType.FORBIDDEN, field=field, detail=detail)


def duplicate(field: str, value: Any) -> FieldError:
    """Return the error for a duplicate value."""
    return FieldError(error_type=ErrorType.DUPLICATE, field=field, value=value)


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> FieldError:
    """Return the error for a value outside of an enumeration."""
    shown = (choice if isinstance(choice, str) else json.dumps(choice) for choice in supported)
    detail = "supported values: " + ", ".join(go_value(choice) for choice in shown)
    return FieldError(error_type=ErrorType.NOT_SUPPORTED, field=field, value=value, detail=detail)


def too_long(field: str, limit: int) -> FieldError:
    """Return the error for a string that is too long, in bytes."""
    detail = f"may not be more than {limit} byte{'' if limit == 1 else 's'}"
    return FieldError(error_type=ErrorType.TOO_LONG, field=field, detail=detail)


def too_many(field: str, actual: int, limit: int) -> FieldError:
    """Return the error for a list or map with too many entries."""
    detail = f"must have at most {limit} item{'' if limit == 1 else 's'}"
    return FieldError(error_type=ErrorType.TOO_MANY, field=field, value=actual, detail=detail)


def type_invalid(field: str, value: str, detail: str) -> FieldError:
    """Return the error for a value of another JSON type than the schema's."""
    return FieldError(error_type=ErrorType.TYPE_INVALID, field=field, value=value, detail=detail)


def aggregate(errors: Sequence[FieldError]) -> str:
    """Join distinct errors to the text of a Status message."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
