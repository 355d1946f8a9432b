"""Strict field validation for all writes, which finds mistyped field names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hack.faults.forwarding import Forwarding

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Request

_WRITES = frozenset({"POST", "PUT", "PATCH"})
_OPTION = "fieldValidation"


class Strict(Forwarding):
    """A `Transport` that requests strict field validation: unknown and duplicate fields are refused.

    In production the server warns: an upgrade must not fail because a newer version of a kind lacks a field.
    """

    def outgoing(self, request: Request) -> Request:
        """Return the request, a write with strict validation."""
        if request.method not in _WRITES or any(key == _OPTION for key, _ in request.query):
            return request
        return replace(request, query=(*request.query, (_OPTION, "Strict")))
