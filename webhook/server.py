"""Serves the webhook over HTTPS: one AdmissionReview in, one out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from upgrade_manager.runtime.http_server import HttpServer
from webhook.review import BadReview, parse, respond

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from webhook.admission import Admission

PATH = "/validate-management-harvesterhci-io-v1beta1-upgradeplan"
FLAG = "--webhook-bind-address"
#: Bytes of a review: etcd's limit for an object, twice, in JSON.
MAX_BODY = 3 << 20
_JSON = "application/json"
log = structlog.get_logger(__name__)


def webhook_server(
    admission: Admission, *, address: tuple[str, int], tls: Callable[[], Awaitable[ssl.SSLContext | None]]
) -> HttpServer:
    """Return the server."""
    return HttpServer("webhook", flag=FLAG, app=webhook_app(admission), address=address, tls=tls)


def webhook_app(admission: Admission) -> web.Application:
    """Return the application."""
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_post(PATH, _reviews(admission))
    for path in ("/healthz", "/readyz"):
        app.router.add_get(path, _ok)
    return app


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _reviews(admission: Admission) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        if request.content_type != _JSON:
            return web.Response(status=400, text=f"contentType={request.content_type}, expected {_JSON}")
        try:
            review = parse(await request.read())
        except BadReview as error:
            return web.Response(status=400, text=str(error))
        verdict = await admission.decide(review)
        for finding in verdict.findings:
            log.info("denied", operation=review.operation, plan=review.name, field=finding.field, why=finding.message)
        return web.json_response(respond(review, verdict))

    return handle
