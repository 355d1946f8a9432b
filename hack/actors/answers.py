"""Answers of those who serve paths of their own behind the API server."""

from __future__ import annotations

import json
from typing import Any

from upgrade_manager.kube.transport import Response

_JSON = {"content-type": "application/json"}
_REASONS = {404: "NotFound", 409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable"}


def document(body: Any) -> Response:
    """A JSON document."""
    return Response(status=200, headers=_JSON, body=json.dumps(body, separators=(",", ":")).encode())


def accepted() -> Response:
    """Taken, and nothing to say about it."""
    return Response(status=202)


def refused(status: int, message: str) -> Response:
    """A Status object of that code."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(status, ""),
        "code": status,
    }
    return Response(status=status, headers=_JSON, body=json.dumps(body).encode())
