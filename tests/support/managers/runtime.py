"""Work queues, HTTP servers, runnables and token reviews for tests of the runtime."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from tests.support.server.tokens import subject_of
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.transport import Request, Response, Stream
from upgrade_manager.runtime.http_server import HttpServer
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.workqueue import ItemExponentialFailureRateLimiter, WorkQueue


def new_limiter(
    *, base_delay: float = 1.0, max_delay: float = 60.0, jitter: float = 0.0
) -> ItemExponentialFailureRateLimiter:
    return ItemExponentialFailureRateLimiter(
        base_delay=base_delay, max_delay=max_delay, jitter=jitter, random=Random(1)
    )


def new_queue(*, max_delay: float = 60.0, metrics: Metrics | None = None) -> WorkQueue:
    limiter = new_limiter(max_delay=max_delay)
    return WorkQueue("plans", limiter=limiter, metrics=metrics or Metrics(CollectorRegistry()))


@asynccontextmanager
async def serving(server: HttpServer) -> AsyncIterator[str]:
    """Run the server and yield its host and port."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.bound()
        yield f"127.0.0.1:{server.port}"
        task.cancel()


@dataclass
class Recorder:
    """Records (time, event) in order."""

    lines: list[tuple[float, str]] = field(default_factory=list)

    def record(self, event: str) -> None:
        self.lines.append((asyncio.get_running_loop().time(), event))

    @property
    def events(self) -> list[str]:
        return [event for _, event in self.lines]

    def at(self, event: str) -> float:
        return next(time for time, recorded in self.lines if recorded == event)

    def runs(self, name: str, *, stop_takes: float = 0.0) -> Callable[[], Awaitable[None]]:
        """Return a runnable that takes some time to stop."""

        async def run() -> None:
            self.record(f"+{name}")
            try:
                await asyncio.sleep(1e9)
            finally:
                await asyncio.sleep(stop_takes)
                self.record(f"-{name}")

        return run

    def ignores_cancellation(self, name: str, *, until: asyncio.Event) -> Callable[[], Awaitable[None]]:
        """Return a runnable that ignores cancellation until the event is set."""

        async def run() -> None:
            while not until.is_set():
                try:
                    await until.wait()
                except asyncio.CancelledError:
                    self.record(f"!{name}")
            self.record(f"-{name}")

        return run

    def fails(self, name: str, error: BaseException, *, after: float = 0.0) -> Callable[[], Awaitable[None]]:
        """Return a runnable that raises."""

        async def run() -> None:
            self.record(f"+{name}")
            await asyncio.sleep(after)
            raise error

        return run

    def ready(self, name: str, *, after: float) -> Callable[[], Awaitable[None]]:
        """Return a readiness check that takes some time."""

        async def wait() -> None:
            await asyncio.sleep(after)
            self.record(f"={name}")

        return wait


@dataclass
class Reviews:
    """Tokens of the subject `good-NAME` belong to user NAME; users in `allowed` may read everything."""

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
        subject = subject_of(token)
        if not subject.startswith("good-"):
            return {"error": "unknown token"}
        user = {"username": subject.removeprefix("good-"), "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}
        return {"authenticated": True, "user": user}

    def _access(self, spec: dict[str, Any]) -> dict[str, Any]:
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        assert (spec["uid"], spec["groups"], spec["extra"]) == ("1", ["g"], {"k": ["v"]})
        return {"allowed": spec["user"] in self.allowed}

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    def client(self) -> Client:
        return Client(self, user_agent="test", random=Random(1))
