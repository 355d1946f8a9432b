"""An API server that only serves TokenReviews and SubjectAccessReviews."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube.client import Client
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from upgrade_manager.kube.transport import Stream


@dataclass
class Reviews:
    """Token `good-NAME` belongs to user NAME; users in `allowed` may read everything."""

    allowed: set[str] = field(default_factory=lambda: {"prometheus"})
    #: Kinds that get status 500.
    broken: set[str] = field(default_factory=set)
    #: Kinds whose requests hang.
    hanging: set[str] = field(default_factory=set)
    specs: list[dict[str, Any]] = field(default_factory=list)
    concurrent: int = 0
    max_concurrent: int = 0
    delay: float = 0.0

    async def send(self, request: Request) -> Response:
        review = json.loads(request.body)
        kind, spec = review["kind"], review["spec"]
        self.specs.append(spec)
        self.concurrent += 1
        self.max_concurrent = max(self.max_concurrent, self.concurrent)
        try:
            await asyncio.sleep(1e6 if kind in self.hanging else self.delay)
        finally:
            self.concurrent -= 1
        if kind in self.broken:
            return Response(status=500, body=b"{}")
        status = self._user(spec["token"]) if kind == "TokenReview" else self._access(spec)
        return Response(status=201, body=json.dumps(review | {"status": status}).encode())

    def _user(self, token: str) -> dict[str, Any]:
        if not token.startswith("good-"):
            return {"error": "unknown token"}
        user = {"username": token.removeprefix("good-"), "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}
        return {"authenticated": True, "user": user}

    def _access(self, spec: dict[str, Any]) -> dict[str, Any]:
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        assert (spec["uid"], spec["groups"], spec["extra"]) == ("1", ["g"], {"k": ["v"]})
        return {"allowed": spec["user"] in self.allowed}

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    def client(self) -> Client:
        return Client(self, user_agent="test", random=Random(1))
