"""An admission webhook on this machine, over HTTPS, that says what its URL's path asks it to say."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from hack.cluster.certificates import Authority, server_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.bareapi import BareApi

VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NAME = "check.example.io"
CANARY = "/canary"
#: Never answers in time.
SLOW = "/slow"
#: Looks until a configuration is in force, and seconds between them.
_LOOKS, _PAUSE = 300, 0.05


@dataclass(slots=True)
class WebhookServer:
    """The webhook, and what it was asked."""

    url: str
    #: PEM of whoever signed its certificate.
    authority: bytes
    #: Response by path, without the uid; or the whole answer.
    answers: dict[str, dict[str, Any] | Whole] = field(default_factory=dict)
    #: The reviews' requests, those of the canary left out.
    asked: list[dict[str, Any]] = field(default_factory=list)
    canaries: int = 0
    #: Until then, what is slow takes.
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, incoming: web.Request) -> web.Response:
        """Answer a review, once a connection: an idle one would outlive the webhook."""
        answer = await self._answered(incoming)
        answer.force_close()
        return answer

    async def _answered(self, incoming: web.Request) -> web.Response:
        if incoming.path == CANARY:
            self.canaries += 1
        request = (await incoming.json())["request"]
        if incoming.path != CANARY:
            self.asked.append(request)
        if incoming.path == SLOW:
            await self.closing.wait()
        answer = self.answers.get(incoming.path, {"allowed": True})
        if isinstance(answer, Whole):
            return answer.response()
        return web.Response(text=_review({"response": {"uid": request["uid"]} | answer}))

    def bundle(self) -> str:
        """The authority as a configuration carries it."""
        return base64.b64encode(self.authority).decode()

    @asynccontextmanager
    async def configured(self, api: BareApi, path: str, **more: Any) -> AsyncIterator[None]:
        """In force for the test's namespace; a second webhook, for Secrets, tells when."""
        where = {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}
        common = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "namespaceSelector": where}
        hook = common | {"name": NAME, "clientConfig": self.client(path), "rules": [rule("configmaps")]} | more
        canary = common | {
            "name": "canary.example.io",
            "clientConfig": self.client(CANARY),
            "rules": [rule("secrets")],
        }
        answer = await api.admin.post(VALIDATING, {"metadata": {"name": api.word}, "webhooks": [hook, canary]})
        assert answer.status == 201, answer.body
        await self._in_force(api)
        try:
            yield
        finally:
            await api.admin.delete(f"{VALIDATING}/{api.word}")

    def client(self, path: str) -> dict[str, str]:
        """The clientConfig for a path."""
        return {"url": f"{self.url}{path}", "caBundle": self.bundle()}

    async def _in_force(self, api: BareApi) -> None:
        for _ in range(_LOOKS):
            await api.admin.post(api.path("secrets"), {"metadata": {"name": "canary"}}, dryRun="All")
            if self.canaries:
                return
            await asyncio.sleep(_PAUSE)
        raise AssertionError("the webhook is never asked")


def rule(*resources: str, **more: Any) -> dict[str, Any]:
    """A rule for all operations on resources of the core group."""
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [*resources]} | more


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole answer, whatever was asked."""

    body: str
    status: int = 200

    def response(self) -> web.Response:
        """As the web server sends it, each time a new one."""
        return web.Response(status=self.status, text=self.body)


def _review(content: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"} | content)


def review(**content: Any) -> Whole:
    """A whole answer of the right kind."""
    return Whole(body=_review(content))


def other(kind: str, version: str) -> Whole:
    """A whole answer of another kind."""
    return Whole(body=json.dumps({"kind": kind, "apiVersion": version}))


@asynccontextmanager
async def hook() -> AsyncIterator[WebhookServer]:
    """A running webhook."""
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
        # The other side closes its end too.
        await asyncio.sleep(_PAUSE)
