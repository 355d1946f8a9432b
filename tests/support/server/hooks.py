"""An HTTPS admission webhook with a scripted response for each URL path."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from hack.control_plane.certificates import Authority, server_context
from tests.support.server.bareapi import BareApi

VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = VALIDATING.replace("validating", "mutating")
NAME = "check.example.io"
CANARY = "/canary"
#: Its response always exceeds the timeout.
SLOW = "/slow"
#: Polls until a configuration is effective, and seconds between them.
_POLLS, _INTERVAL = 300, 0.05


@dataclass(slots=True)
class WebhookServer:
    """The webhook and the reviews that it received."""

    url: str
    #: The CA's certificate in PEM.
    authority: bytes
    #: Response by path, without the uid; or the whole body.
    answers: dict[str, dict[str, Any] | FixedResponse] = field(default_factory=dict)
    #: The reviews' requests without the canary's.
    reviews: list[dict[str, Any]] = field(default_factory=list)
    canaries: int = 0
    #: Set when slow responses may end.
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, incoming: web.Request) -> web.Response:
        """Respond to a review and close the connection, so that none outlives the webhook."""
        request = (await incoming.json())["request"]
        if incoming.path == CANARY:
            self.canaries += 1
        else:
            self.reviews.append(request)
        if incoming.path == SLOW:
            await self.closing.wait()
        answer = self.answers.get(incoming.path, {"allowed": True})
        if not isinstance(answer, FixedResponse):
            answer = review(response={"uid": request["uid"]} | answer)
        response = web.Response(status=answer.status, text=answer.body)
        response.force_close()
        return response

    def bundle(self) -> str:
        """Return the caBundle."""
        return base64.b64encode(self.authority).decode()

    @asynccontextmanager
    async def configured(
        self, api: BareApi, path: str, *, at: str = VALIDATING, name: str = "", **more: Any
    ) -> AsyncIterator[None]:
        """Register the webhook for the test's namespace, and wait for it by a second webhook for Secrets."""
        name = name or api.word
        self.canaries = 0
        where = {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}
        common = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "namespaceSelector": where}
        hook = common | {"name": NAME, "clientConfig": self.client(path), "rules": [rule("configmaps")]} | more
        canary = common | {"name": "canary.example.io", "clientConfig": self.client(CANARY), "rules": [rule("secrets")]}
        answer = await api.admin.post(at, {"metadata": {"name": name}, "webhooks": [hook, canary]})
        assert answer.status == 201, answer.body
        await self._until_effective(api)
        try:
            yield
        finally:
            await api.admin.delete(f"{at}/{name}")

    def client(self, path: str) -> dict[str, str]:
        """Return the clientConfig for a path."""
        return {"url": f"{self.url}{path}", "caBundle": self.bundle()}

    async def _until_effective(self, api: BareApi) -> None:
        for _ in range(_POLLS):
            await api.admin.post(api.path("secrets"), {"metadata": {"name": "canary"}}, dryRun="All")
            if self.canaries:
                return
            await asyncio.sleep(_INTERVAL)
        raise AssertionError("the webhook receives no review")


def rule(*resources: str, **more: Any) -> dict[str, Any]:
    """Return a rule for all operations on resources of the core group."""
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [*resources]} | more


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedResponse:
    """A response that ignores the request."""

    body: str
    status: int = 200


def review(kind: str = "AdmissionReview", version: str = "admission.k8s.io/v1", **content: Any) -> FixedResponse:
    """Return an AdmissionReview, or an object of another kind."""
    return FixedResponse(body=json.dumps({"apiVersion": version, "kind": kind} | content))


@asynccontextmanager
async def hook() -> AsyncIterator[WebhookServer]:
    authority = Authority(now=datetime.now(UTC))
    with tempfile.TemporaryDirectory() as folder:
        tls = server_context(authority.server(), Path(folder))
    made = WebhookServer(url="", authority=authority.certificate)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        made.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        made.closing.set()
        await runner.cleanup()
        # Let the client close its side.
        await asyncio.sleep(_INTERVAL)
