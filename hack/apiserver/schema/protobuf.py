"""Messages of built-in kinds in protobuf, as the typed commands of kubectl send them, read as JSON values.

`wirenumbers.json` has the numbers of the fields of each struct in `gotypes.json`, from k8s.io/api v0.35.4; numbers
below a number are those of a struct that JSON inlines. The types of the fields are those of `go_types.py`.
"""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.schema.go_types import Field, Type

TABLE = Path(__file__).with_name("wirenumbers.json")

Json = Any
Numbers = dict[str, Any]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MASK, _SIGN = 2**64 - 1, 2**63


class MalformedError(ValueError):
    """The bytes are not a message of the type."""


class UnknownFieldError(ValueError):
    """The message has a field without a number in the table."""


def message(data: bytes, kind: Type) -> dict[str, Json]:
    """Return the members of a struct. Raises MalformedError or UnknownFieldError."""
    return _members(data, _numbers()[kind.key], kind)


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield numbers and raw values: whole numbers, or bytes. Raises MalformedError."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield tag >> 3, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire_type)
        if wire_type == _LENGTH:
            size, position = _varint(data, position)
        if size is None or position + size > len(data):
            raise MalformedError(f"unexpected end of data or wire type {wire_type}")
        yield tag >> 3, data[position : position + size]
        position += size


def text(raw: Any) -> str:
    """Return a string field. Raises MalformedError."""
    if not isinstance(raw, bytes):
        raise MalformedError("a string is a number")
    return raw.decode("utf-8", "replace")


def nested(raw: Any) -> bytes:
    """Return a field that is a message or bytes. Raises MalformedError."""
    if not isinstance(raw, bytes):
        raise MalformedError("a message is a number")
    return raw


@cache
def _numbers() -> Numbers:
    return json.loads(TABLE.read_text())  # type: ignore[no-any-return]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value & _MASK, position
        shift += 7
    raise MalformedError("unexpected end of data")


def _members(data: bytes, numbers: Numbers, kind: Type) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for number, raw in fields(data):
        name = numbers.get(str(number))
        if name is None:
            raise UnknownFieldError(f"{kind.name} has no field {number}")
        if not isinstance(name, str):
            result |= _members(nested(raw), name, kind)
        else:
            _add(result, kind.fields[name], raw)
    return result


def _add(result: dict[str, Json], field: Field, raw: Any) -> None:
    kind = field.type
    if kind.form == "list" and kind.item is not None:
        result.setdefault(field.name, []).append(_value(raw, kind.item))
    elif kind.form == "map" and kind.item is not None:
        entry = dict(fields(nested(raw)))
        empty = 0 if kind.item.leaf in {"bool", "int32", "int64"} else b""
        result.setdefault(field.name, {})[text(entry.get(1, b""))] = _value(entry.get(2, empty), kind.item)
    else:
        result[field.name] = _value(raw, kind)


def _value(raw: Any, kind: Type) -> Json:
    if kind.form == "struct":
        return message(nested(raw), kind)
    read = _LEAVES.get(kind.leaf)
    if read is None:
        raise UnknownFieldError(f"{kind.name} is not in the table")
    return read(raw)


def _whole(raw: Any) -> int:
    if not isinstance(raw, int):
        raise MalformedError("a number is a message")
    return raw - (1 << 64) if raw & _SIGN else raw


def _float(raw: Any) -> float:
    if len(nested(raw)) != 8:  # noqa: PLR2004  # bytes of a double
        raise MalformedError("a double has not 8 bytes")
    return float(struct.unpack("<d", raw)[0])


def _time(raw: Any) -> str | None:
    """Return a Time or MicroTime; None for Go's zero time, which is an empty message."""
    parts = dict(fields(nested(raw)))
    seconds, nanoseconds = _whole(parts.get(1, 0)), _whole(parts.get(2, 0))
    if not seconds and not nanoseconds:
        return None
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise MalformedError("a time is out of range") from error
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _quantity(raw: Any) -> str:
    return text(dict(fields(nested(raw))).get(1, b""))


def _port(raw: Any) -> int | str:
    parts = dict(fields(nested(raw)))
    return text(parts.get(3, b"")) if parts.get(1) else _whole(parts.get(2, 0))


_LEAVES = {
    "string": text,
    "bool": lambda raw: bool(_whole(raw)),
    "int32": _whole,
    "int64": _whole,
    "float64": _float,
    "bytes": lambda raw: base64.b64encode(nested(raw)).decode(),
    "time": _time,
    "microtime": _time,
    "quantity": _quantity,
    "port": _port,
}
