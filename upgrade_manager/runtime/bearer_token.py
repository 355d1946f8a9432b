"""Recognizes bearer tokens that the API server may know; `metrics_auth` reviews no others.

Tokens of service accounts and of OIDC are JSON web tokens. Opaque ones (kube-apiserver's `--token-auth-file`) are not
recognized: a review of any text would let every client call the API server.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

#: Characters of a token.
MAX_TOKEN = 16 * 1024
#: Seconds after its expiry in which a token is still reviewed: the API server's clock may be late.
LEEWAY = 300.0

_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


def bearer_token(header: str) -> str:
    """Return the bearer token of an Authorization header; empty without one."""
    scheme, _, token = header.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" and len(token) <= MAX_TOKEN else ""


def may_be_valid(token: str, *, now: datetime) -> bool:
    """Return True for a JSON web token that has not expired. Its signature is not checked."""
    if not _JWT.fullmatch(token):
        return False
    header, claims, _ = token.split(".")
    if _object(header) is None or (found := _object(claims)) is None:
        return False
    expiry = found.get("exp")
    # Tokens in Secrets do not expire.
    return expiry is None or (isinstance(expiry, int | float) and now.timestamp() - LEEWAY < expiry)


def _object(part: str) -> dict[str, Any] | None:
    """Return the JSON object of a part; None unless it is one."""
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
