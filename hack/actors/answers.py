"""HTTP responses of components that serve subresources behind the API server."""

from __future__ import annotations

import json
from typing import Any

from hack.apiserver.status import JSON_HEADERS, StatusError
from upgrade_manager.kube.transport import Response

_REASONS = {400: "BadRequest", 404: "NotFound", 409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable"}


def document(body: Any) -> Response:
    """Build a 200 response with a JSON document."""
    return Response(status=200, headers=JSON_HEADERS, body=json.dumps(body, separators=(",", ":")).encode())


def accepted() -> Response:
    """Build an empty 202 response."""
    return Response(status=202)


def refused(status: int, message: str) -> Response:
    """Build an error response with a Status object."""
    return StatusError(code=status, reason=_REASONS.get(status, ""), message=message).response()
