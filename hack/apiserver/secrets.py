"""The write-only field stringData of Secrets."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row


def secret_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Encode stringData into data, where it takes precedence; a mutating stage after the schema's."""
    _ = (old, operation, options)
    plain = new.get("stringData")
    if row.resource.name != SECRETS.name or not isinstance(plain, dict):
        return new
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
    kept = {key: value for key, value in new.items() if key != "stringData"}
    return kept | {"data": (new.get("data") or {}) | encoded}
