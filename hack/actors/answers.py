"""HTTP responses of components that serve subresources behind the API server."""

from __future__ import annotations

import json
from typing import Any

from upgrade_manager.kube.transport import Response

_JSON = {"content-type": "application/json"}
_REASONS = {400: "BadRequest", 404: "NotFound", 409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable"}


def document(body: Any) -> Response:
    """Build a 200 response with a JSON document."""
    return Response(status=200, headers=_JSON, body=json.dumps(body, separators=(",", ":")).encode())


def accepted() -> Response:
    """Build an empty 202 response."""
    return Response(status=202)


def refused(status: int, message: str) -> Response:
    """Build an error response with a Status object."""
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
