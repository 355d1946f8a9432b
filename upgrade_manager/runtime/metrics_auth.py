"""Authorizes metrics requests with the API server's TokenReview and SubjectAccessReview (as kube-rbac-proxy does).

Decisions are cached, so that scrapes cost few reviews and invalid tokens cannot flood the API server.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client

TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io", version="v1", plural="tokenreviews", kind="TokenReview", namespaced=False
)
SUBJECT_ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
)

#: Seconds for which decisions are cached.
ALLOWED_TTL, DENIED_TTL = 60.0, 10.0
#: Seconds for one review.
REVIEW_TIMEOUT = 10.0
#: Upper limits: decisions in the cache, characters of a token, concurrent reviews.
_MAX_DECISIONS, _MAX_TOKEN, _MAX_REVIEWS = 256, 16 * 1024, 4


@dataclass(frozen=True, slots=True)
class Decision:
    """An HTTP status, 200 for allowed, and the text of the response otherwise."""

    status: int
    text: str = ""


ALLOWED = Decision(200)
UNAUTHORIZED = Decision(401, "Unauthorized\n")


class MetricsAuthorizer:
    """Decides whether a request may `get` a path, by its Authorization header."""

    def __init__(self, client: Client, *, path: str) -> None:
        self._client = client
        self._path = path
        self._log = structlog.get_logger(__name__)
        #: Expiry and decision by digest of the token, oldest first.
        self._decisions: OrderedDict[str, tuple[float, Decision]] = OrderedDict()
        self._reviews = asyncio.Semaphore(_MAX_REVIEWS)

    async def authorize(self, header: str) -> Decision:
        """Decide whether the user with this header's bearer token may read the path."""
        scheme, _, token = header.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii() or len(token) > _MAX_TOKEN:
            return UNAUTHORIZED
        digest = hashlib.sha256(token.encode()).hexdigest()
        async with self._reviews:
            return self._cached(digest) or await self._review_token(token, digest)

    def _cached(self, digest: str) -> Decision | None:
        expiry, decision = self._decisions.get(digest, (float("-inf"), UNAUTHORIZED))
        return decision if loop_time() < expiry else None

    def _cache(self, digest: str, decision: Decision) -> Decision:
        ttl = ALLOWED_TTL if decision is ALLOWED else DENIED_TTL
        self._decisions[digest] = (loop_time() + ttl, decision)
        self._decisions.move_to_end(digest)
        if len(self._decisions) > _MAX_DECISIONS:
            self._decisions.popitem(last=False)
        return decision

    async def _review_token(self, token: str, digest: str) -> Decision:
        try:
            user = await self._authenticate(token)
        except (KubeError, TimeoutError) as error:
            return self._failed("Authentication failed", error)
        if user is None:
            return self._cache(digest, UNAUTHORIZED)
        name = user.get("username", "")
        try:
            is_allowed = await self._may_read(user)
        except (KubeError, TimeoutError) as error:
            return self._failed(f"Authorization for user {name} failed", error)
        denied = Decision(403, f"Authorization denied for user {name}\n")
        return self._cache(digest, ALLOWED if is_allowed else denied)

    async def _authenticate(self, token: str) -> dict[str, Any] | None:
        """Return the user of the token; None for an invalid token."""
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        return dict(status.get("user") or {}) if status.get("authenticated") else None

    async def _may_read(self, user: dict[str, Any]) -> bool:
        spec = {
            "user": user.get("username", ""),
            "groups": user.get("groups") or [],
            "uid": user.get("uid", ""),
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": self._path, "verb": "get"},
        }
        return bool((await self._review(SUBJECT_ACCESS_REVIEWS, spec)).get("allowed"))

    async def _review(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        async with asyncio.timeout(REVIEW_TIMEOUT):
            created = await self._client.create(resource, review)
        return dict(created.get("status") or {})

    def _failed(self, text: str, error: Exception) -> Decision:
        """Return a decision that is not cached, because the API server could not decide."""
        reason = str(error) or f"timed out after {REVIEW_TIMEOUT:g} s"
        self._log.warning("metrics request not authorized", reason=text, error=reason)
        return Decision(500, text + "\n")
