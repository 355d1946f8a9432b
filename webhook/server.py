"""Serves the webhook over HTTPS: one AdmissionReview in, one out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.runtime.http_server import HttpServer
from webhook.body import BodyReader
from webhook.check import Finding
from webhook.review import BadReview, Verdict, parse, printable, respond
from webhook.runner import DEADLINE

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from webhook.admission import Admission
    from webhook.metrics import WebhookMetrics
    from webhook.review import AdmissionRequest

PATH = "/validate-management-harvesterhci-io-v1beta1-upgradeplan"
FLAG = "--webhook-bind-address"
#: Seconds for running reviews when the server stops: longer than any.
_DRAIN_TIMEOUT = DEADLINE + 2
_JSON = "application/json"
_INTERNAL_ERROR = Finding(message="The webhook failed unexpectedly. See the manager's log, then try again")
log = structlog.get_logger(__name__)


def webhook_server(
    admission: Admission,
    *,
    metrics: WebhookMetrics,
    address: tuple[str, int],
    tls: Callable[[], Awaitable[ssl.SSLContext | None]],
) -> HttpServer:
    """Return the server."""
    return HttpServer(
        "webhook",
        flag=FLAG,
        app=webhook_app(admission, metrics=metrics),
        address=address,
        tls=tls,
        drain_timeout=_DRAIN_TIMEOUT,
    )


def webhook_app(admission: Admission, *, metrics: WebhookMetrics) -> web.Application:
    """Return the application; it can review plans as soon as it is served, so both probes are constant."""
    app = web.Application()
    app.router.add_post(PATH, _Handler(admission, metrics).handle)
    for path in ("/healthz", "/readyz"):
        app.router.add_get(path, _ok)
    return app


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


class _Handler:
    """Responds to every request with 200 and a review, or with a 4xx and a sentence."""

    def __init__(self, admission: Admission, metrics: WebhookMetrics) -> None:
        self._admission = admission
        self._metrics = metrics
        self._bodies = BodyReader()

    async def handle(self, request: web.Request) -> web.Response:
        began = loop_time()
        with self._metrics.in_flight.track_inprogress():
            try:
                return await self._handle(request, began=began)
            except BadReview as error:
                self._metrics.record_bad(seconds=loop_time() - began)
                log.info("bad review", error=str(error), status=int(error.status))
                response = web.Response(status=error.status, text=str(error))
                # The rest of the body is not read.
                response.force_close()
                return response

    async def _handle(self, request: web.Request, *, began: float) -> web.Response:
        if request.content_type != _JSON:
            raise BadReview(f"the Content-Type is not {_JSON}")
        async with self._bodies.read(request) as body:
            review = parse(body)
            verdict = await self._decide(review)
            self._metrics.record(review.operation, verdict, seconds=loop_time() - began)
            return web.json_response(respond(review, verdict))

    async def _decide(self, review: AdmissionRequest) -> Verdict:
        """Return the verdict; an unexpected error denies."""
        log_ = log.bind(operation=printable(review.operation), plan=printable(review.name))
        try:
            verdict = await self._admission.decide(review)
        except Exception:  # fail closed
            log_.exception("review failed unexpectedly")
            return Verdict(findings=[_INTERNAL_ERROR])
        if verdict.findings:
            first = verdict.findings[0]
            log_.info("denied", findings=len(verdict.findings), first=printable(f"{first.field}: {first.message}"))
        return verdict
