"""Authorizes metrics requests with the API server's TokenReview and SubjectAccessReview (as kube-rbac-proxy does).

metrics_server.py asks it for each request; review_shares.py limits its reviews.

Decisions are cached, so that scrapes cost few reviews. Unknown tokens are reviewed at a limited rate for each peer,
separately from known scrapers, which are also allowed while the API server is away. Only JSON web tokens are reviewed.
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
from upgrade_manager.kube.resources import SUBJECT_ACCESS_REVIEWS, Resource
from upgrade_manager.runtime.bearer_token import bearer_token, may_be_valid
from upgrade_manager.runtime.refusal_log import LineLimit
from upgrade_manager.runtime.review_shares import ReviewShares

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from upgrade_manager.kube.client import Client

TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io", version="v1", plural="tokenreviews", kind="TokenReview", namespaced=False
)

#: Seconds for which decisions are cached.
ALLOWED_TTL, DENIED_TTL = 60.0, 10.0
#: Seconds for which a scraper that was allowed still is while the API server cannot decide.
STALE_TTL = 3600.0
#: Seconds for one review.
REVIEW_TIMEOUT = 10.0
#: Upper limits: decisions in each cache, concurrent reviews of known and of unknown tokens.
_MAX_DECISIONS, _MAX_REVIEWS = 256, 4


@dataclass(frozen=True, slots=True)
class Decision:
    """An HTTP status, 200 for allowed, and the text of the response otherwise."""

    status: int
    text: str = ""


ALLOWED = Decision(200)
UNAUTHORIZED = Decision(401, "Unauthorized\n")
TOO_MANY_REQUESTS = Decision(429, "Too Many Requests\n")


class _Cache:
    """The last decisions by digest of the token, with the loop time of each."""

    def __init__(self) -> None:
        self._decisions: OrderedDict[str, tuple[float, Decision]] = OrderedDict()

    def get(self, digest: str, *, ttl: float) -> Decision | None:
        """Return the decision unless it is older than `ttl` seconds."""
        made_at, decision = self._decisions.get(digest, (float("-inf"), UNAUTHORIZED))
        return decision if loop_time() < made_at + ttl else None

    def put(self, digest: str, decision: Decision) -> None:
        """Store the decision, and drop the oldest one if there are too many."""
        self._decisions[digest] = (loop_time(), decision)
        self._decisions.move_to_end(digest)
        if len(self._decisions) > _MAX_DECISIONS:
            self._decisions.popitem(last=False)

    def remove(self, digest: str) -> None:
        """Drop the decision, if there is one."""
        self._decisions.pop(digest, None)


class MetricsAuthorizer:
    """Decides whether a request may `get` a path, by its Authorization header."""

    def __init__(self, client: Client, *, path: str, now: Callable[[], datetime]) -> None:
        self._client = client
        self._path = path
        self._now = now
        self._log = structlog.get_logger(__name__)
        self._allowed, self._denied = _Cache(), _Cache()
        self._known_reviews, self._unknown_reviews = asyncio.Semaphore(_MAX_REVIEWS), asyncio.Semaphore(_MAX_REVIEWS)
        self._shares = ReviewShares()
        self._lines = LineLimit()

    async def authorize(self, header: str, *, peer: str) -> Decision:
        """Decide whether the user with this header's bearer token may read the path."""
        token = bearer_token(header)
        if not may_be_valid(token, now=self._now()):
            return UNAUTHORIZED
        digest = hashlib.sha256(token.encode()).hexdigest()
        if self._allowed.get(digest, ttl=STALE_TTL) is not None:
            async with self._known_reviews:
                return self._cached(digest) or await self._review_token(token, digest)
        async with self._shares.turn(peer) as share:
            # A request with the same token may have been decided meanwhile.
            if (cached := self._cached(digest)) is not None:
                return cached
            if not share.take():
                return TOO_MANY_REQUESTS
            async with self._unknown_reviews:
                return await self._review_token(token, digest)

    def _cached(self, digest: str) -> Decision | None:
        return self._allowed.get(digest, ttl=ALLOWED_TTL) or self._denied.get(digest, ttl=DENIED_TTL)

    def _cache(self, digest: str, decision: Decision) -> Decision:
        kept, other = (self._allowed, self._denied) if decision is ALLOWED else (self._denied, self._allowed)
        kept.put(digest, decision)
        other.remove(digest)
        return decision

    async def _review_token(self, token: str, digest: str) -> Decision:
        try:
            user = await self._authenticate(token)
        except (KubeError, TimeoutError) as error:
            return self._failed(TOKEN_REVIEWS, digest, "Authentication failed", error)
        if user is None:
            return self._cache(digest, UNAUTHORIZED)
        name = user.get("username", "")
        try:
            is_allowed = await self._may_read(user)
        except (KubeError, TimeoutError) as error:
            return self._failed(SUBJECT_ACCESS_REVIEWS, digest, f"Authorization for user {name} failed", error)
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

    def _failed(self, review: Resource, digest: str, text: str, error: Exception) -> Decision:
        """Return a decision that is not cached, because the API server could not decide: the last one for a scraper."""
        reason = str(error) or f"timed out after {REVIEW_TIMEOUT:g} s"
        if (suppressed := self._lines.take(review.kind)) is not None:
            fields = {"reason": text, "error": reason, "suppressed": suppressed or None}
            self._log.warning("metrics request not authorized", **fields)
        return self._allowed.get(digest, ttl=STALE_TTL) or Decision(500, text + "\n")
