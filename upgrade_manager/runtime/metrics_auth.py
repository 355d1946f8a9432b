"""Whether someone may read the metrics: the API server is asked who they are and what they may (kube-rbac-proxy's way).

TokenReview tells whose token it is, SubjectAccessReview whether that user may `get` the path. Answers are kept for a
short while, so that a scrape every 15 seconds costs a few reviews a minute, and wrong tokens cannot flood the API.
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

#: Seconds for which a yes and a no are kept.
ALLOWED_FOR, REFUSED_FOR = 60.0, 10.0
#: Answers kept at most, and tokens looked at longer than any real one.
_KEPT = 256
_LONGEST_TOKEN = 16 * 1024
#: Reviews under way at the same time, and seconds for one.
_AT_ONCE = 4
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """An HTTP status, 200 for yes, and the text for a no."""

    status: int
    text: str = ""


YES = Verdict(200)
UNAUTHORIZED = Verdict(401, "Unauthorized\n")


class Scrapers:
    """Judges requests for one path by their Authorization header."""

    def __init__(self, client: Client, *, path: str) -> None:
        self._client = client
        self._path = path
        self._log = structlog.get_logger(__name__)
        #: By the token's digest, until when the verdict counts, and the verdict; oldest first, `_KEPT` at most.
        self._verdicts: OrderedDict[str, tuple[float, Verdict]] = OrderedDict()
        self._reviews = asyncio.Semaphore(_AT_ONCE)

    async def judge(self, authorization: str) -> Verdict:
        """Whether the bearer of this header's token may read the path."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii() or len(token) > _LONGEST_TOKEN:
            return UNAUTHORIZED
        digest = hashlib.sha256(token.encode()).hexdigest()
        async with self._reviews:
            return self._known(digest) or await self._ask(token, digest)

    def _known(self, digest: str) -> Verdict | None:
        until, verdict = self._verdicts.get(digest, (float("-inf"), UNAUTHORIZED))
        return verdict if loop_time() < until else None

    def _keep(self, digest: str, verdict: Verdict) -> Verdict:
        seconds = ALLOWED_FOR if verdict is YES else REFUSED_FOR
        self._verdicts[digest] = (loop_time() + seconds, verdict)
        self._verdicts.move_to_end(digest)
        if len(self._verdicts) > _KEPT:
            self._verdicts.popitem(last=False)
        return verdict

    async def _ask(self, token: str, digest: str) -> Verdict:
        try:
            user = await self._authenticate(token)
        except (KubeError, TimeoutError) as error:
            return self._broken("Authentication failed", error)
        if user is None:
            return self._keep(digest, UNAUTHORIZED)
        name = user.get("username", "")
        try:
            allowed = await self._authorize(user)
        except (KubeError, TimeoutError) as error:
            return self._broken(f"Authorization for user {name} failed", error)
        return self._keep(digest, YES if allowed else Verdict(403, f"Authorization denied for user {name}\n"))

    async def _authenticate(self, token: str) -> dict[str, Any] | None:
        """The user whose token it is; None when it is nobody's."""
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        return dict(status.get("user") or {}) if status.get("authenticated") else None

    async def _authorize(self, user: dict[str, Any]) -> bool:
        subject = {"user": user.get("username", ""), "groups": user.get("groups") or [], "uid": user.get("uid", "")}
        question = {"extra": user.get("extra") or {}, "nonResourceAttributes": {"path": self._path, "verb": "get"}}
        status = await self._review(SUBJECT_ACCESS_REVIEWS, subject | question)
        return bool(status.get("allowed"))

    async def _review(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        async with asyncio.timeout(_PATIENCE):
            answer = await self._client.create(resource, review)
        return dict(answer.get("status") or {})

    def _broken(self, text: str, error: Exception) -> Verdict:
        self._log.warning("metrics request not judged", problem=text, error=str(error) or "no answer in time")
        return Verdict(500, text + "\n")
