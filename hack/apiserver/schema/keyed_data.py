"""Rules for Secrets and ConfigMaps: their keys, their size, and what is frozen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import FieldError, forbidden, invalid, required, too_long

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

#: Bytes that the values of a Secret or ConfigMap may have together.
DATA_SIZE = 1024 * 1024
_LONGEST_KEY = 253
_KEY = "[-._a-zA-Z0-9]+"
_ACCOUNT = "kubernetes.io/service-account.name"
#: The keys that a Secret of a type must have, and whether one of them is enough.
_NEEDED: dict[str, tuple[tuple[str, ...], bool]] = {
    "kubernetes.io/tls": (("tls.crt", "tls.key"), False),
    "kubernetes.io/basic-auth": (("username", "password"), True),
    "kubernetes.io/dockerconfigjson": ((".dockerconfigjson",), False),
    "kubernetes.io/dockercfg": ((".dockercfg",), False),
    "kubernetes.io/ssh-auth": (("ssh-privatekey",), False),
}


def secret(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Secret."""
    data = new.get("data") or {}
    yield from _keys(data, "data")
    if sum(map(_decoded_size, data.values())) > DATA_SIZE:
        yield too_long("data", DATA_SIZE)
    yield from _typed(new, data)
    if old is not None:
        if new.get("type") != old.get("type"):
            yield invalid("type", new.get("type", ""), "field is immutable")
        yield from _frozen(new, old, "data")


def config_map(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a ConfigMap."""
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    yield from _keys(data, "data")
    for key in data:
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _keys(binary, "binaryData")
    if sum(len(text.encode()) for text in data.values()) + sum(map(_decoded_size, binary.values())) > DATA_SIZE:
        # The field has no name in the real server's words either.
        yield too_long("[]", DATA_SIZE)
    if old is not None:
        yield from _frozen(new, old, "data", "binaryData")


def _decoded_size(text: str) -> int:
    """Bytes that base64 stands for."""
    return len(text) // 4 * 3 - text[-2:].count("=")


def _keys(data: Object, field: str) -> Iterator[FieldError]:
    for key in data:
        where = f"{field}[{key}]"
        if len(key) > _LONGEST_KEY:
            yield invalid(where, key, f"must be no more than {_LONGEST_KEY} characters")
        if not re.fullmatch(_KEY, key):
            yield invalid(
                where,
                key,
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
                f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')",
            )
        if key in {".", ".."}:
            yield invalid(where, key, f"must not be '{key}'")
        elif key.startswith(".."):
            yield invalid(where, key, "must not start with '..'")


def _typed(new: Object, data: Object) -> Iterator[FieldError]:
    kind = new.get("type", "")
    needed, one_is_enough = _NEEDED.get(kind, ((), False))
    absent = [key for key in needed if key not in data]
    if not one_is_enough or len(absent) == len(needed):
        yield from (required(f"data[{key}]") for key in absent)
    if kind == "kubernetes.io/service-account-token" and not (new["metadata"].get("annotations") or {}).get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")


def _frozen(new: Object, old: Object, *fields: str) -> Iterator[FieldError]:
    if not old.get("immutable"):
        return
    detail = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        yield forbidden("immutable", detail)
    for field in fields:
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield forbidden(field, detail)
