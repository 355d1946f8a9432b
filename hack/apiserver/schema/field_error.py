"""What is wrong with one field of an object, in kube-apiserver's words.

The forms are those of apimachinery's `field.Error`: clients show `details.causes` one by one (kubectl's
"The UpgradePlan "x" is invalid: ..."), scripts match on their reasons.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Fault(Enum):
    """The kind of fault: the cause's reason, and the words with which its message begins."""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
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
        """As `details.causes[].reason` carries it."""
        return self.value[0]

    @property
    def words(self) -> str:
        """How the message begins."""
        return self.value[1]


class Omitted:
    """Stands for a value that the message leaves out."""


OMITTED = Omitted()

#: Faults whose message never shows the value.
_SILENT = frozenset({Fault.REQUIRED, Fault.FORBIDDEN, Fault.TOO_LONG})

#: With one of these in an object, CEL rules are not run: they could not rely on the schema.
BLOCKING = frozenset({Fault.NOT_SUPPORTED, Fault.REQUIRED, Fault.TOO_LONG, Fault.TOO_MANY, Fault.TYPE_INVALID})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One finding about one field."""

    fault: Fault
    #: Dotted path, `spec.pauseNodes[0]`; empty for the object as a whole.
    field: str
    value: Any = OMITTED
    detail: str = ""

    @property
    def body(self) -> str:
        """The message without the field."""
        text = self.fault.words
        if self.fault not in _SILENT and not isinstance(self.value, Omitted):
            text += ": " + go_value(self.value)
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field or '<nil>'}: {self.body}"

    def cause(self) -> dict[str, str]:
        """The entry for `details.causes` of a Status."""
        return {"reason": self.fault.reason, "message": self.body, "field": self.field or "<nil>"}


def go_value(value: Any) -> str:
    """The value as Go prints it in such a message: strings quoted, anything composed as compact JSON."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def required(field: str, detail: str = "") -> FieldError:
    """A field that must be there is not."""
    return FieldError(fault=Fault.REQUIRED, field=field, detail=detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """A value breaks a rule."""
    return FieldError(fault=Fault.INVALID, field=field, value=value, detail=detail)


def forbidden(field: str, detail: str) -> FieldError:
    """A value is not allowed here and now."""
    return FieldError(fault=Fault.FORBIDDEN, field=field, detail=detail)


def duplicate(field: str, value: Any) -> FieldError:
    """A value that must be unique is there twice."""
    return FieldError(fault=Fault.DUPLICATE, field=field, value=value)


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> FieldError:
    """A value is none of the enumerated ones."""
    shown = (choice if isinstance(choice, str) else json.dumps(choice) for choice in supported)
    detail = "supported values: " + ", ".join(go_value(choice) for choice in shown)
    return FieldError(fault=Fault.NOT_SUPPORTED, field=field, value=value, detail=detail)


def too_long(field: str, limit: int) -> FieldError:
    """A string has more bytes than allowed."""
    detail = f"may not be more than {limit} byte{'' if limit == 1 else 's'}"
    return FieldError(fault=Fault.TOO_LONG, field=field, detail=detail)


def too_many(field: str, actual: int, limit: int) -> FieldError:
    """A list or map has more entries than allowed."""
    detail = f"must have at most {limit} item{'' if limit == 1 else 's'}"
    return FieldError(fault=Fault.TOO_MANY, field=field, value=actual, detail=detail)


def type_invalid(field: str, value: str, detail: str) -> FieldError:
    """A value has another JSON type than the schema says."""
    return FieldError(fault=Fault.TYPE_INVALID, field=field, value=value, detail=detail)


def aggregate(errors: Sequence[FieldError]) -> str:
    """All findings as one text, each once: the tail of a Status message."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
