"""Serves the webhook over HTTPS and responds to each AdmissionReview; wiring.py creates the server."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.runtime.http_server import HttpServer
from webhook import builtin, mutation
from webhook.body import BodyReader
from webhook.check import Finding
from webhook.request_log import description, waivers
from webhook.review import BadReview, Verdict, parse, printable, respond
from webhook.review_log import ReviewLog
from webhook.runner import DEADLINE

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from upgrade_manager.runtime.peers import Peer, Peers
    from webhook.admission import Admission
    from webhook.metrics import WebhookMetrics
    from webhook.review import AdmissionRequest

PATH = "/validate-management-harvesterhci-io-v1beta1-upgradeplan"
FLAG = "--webhook-bind-address"
#: Seconds for running reviews when the server stops, which is longer than any review.
_DRAIN_TIMEOUT = DEADLINE + 2
_JSON = "application/json"
_INTERNAL_ERROR = Finding(problem="The review failed unexpectedly. See the log of the webhook, then try again")
#: Operations whose admission is logged, like every denial.
_LOGGED = frozenset({"CREATE", "DELETE"})
log = structlog.get_logger(__name__)


def webhook_server(
    admission: Admission,
    *,
    metrics: WebhookMetrics,
    address: tuple[str, int],
    tls: Callable[[], Awaitable[ssl.SSLContext | None]],
    peers: Peers,
) -> HttpServer:
    """Return the server, in which connections and bodies of the API servers among `peers` give way last."""
    return HttpServer(
        "webhook",
        flag=FLAG,
        app=webhook_app(admission, metrics=metrics, peers=peers),
        address=address,
        tls=tls,
        peers=peers,
        drain_timeout=_DRAIN_TIMEOUT,
    )


def webhook_app(admission: Admission, *, metrics: WebhookMetrics, peers: Peers) -> web.Application:
    """Return the application, whose probes are constant, because it can review plans as soon as it is served."""
    app = web.Application()
    handler = _Handler(admission, metrics, peers)
    for path in (PATH, builtin.PATH, mutation.PATH):
        app.router.add_post(path, handler.handle)
    for path in ("/healthz", "/readyz"):
        app.router.add_get(path, _ok)
    return app


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


class _Handler:
    """Responds to every request with 200 and a review, or with a 4xx and a sentence."""

    def __init__(self, admission: Admission, metrics: WebhookMetrics, peers: Peers) -> None:
        self._admission = admission
        self._metrics = metrics
        self._peers = peers
        self._bodies = BodyReader(peers)
        self._log = ReviewLog()

    async def handle(self, request: web.Request) -> web.Response:
        began, peer = loop_time(), self._peers.of(request.transport)
        with self._metrics.in_flight.track_inprogress():
            try:
                return await self._handle(request, peer=peer, began=began)
            except BadReview as error:
                self._metrics.record_bad(seconds=loop_time() - began)
                self._log.refused(peer, error=str(error), status=int(error.status))
                response = web.Response(status=error.status, text=str(error))
                # The connection is closed, because the socket still has the rest of the body.
                response.force_close()
                return response

    async def _handle(self, request: web.Request, *, peer: Peer, began: float) -> web.Response:
        if request.content_type != _JSON:
            raise BadReview(f"the Content-Type is not {_JSON}")
        if "Content-Encoding" in request.headers:
            message = "the webhook does not decode bodies. Send the review without Content-Encoding"
            raise BadReview(message, status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        async with self._bodies.read(request) as body:
            review = parse(body)
            if request.path == mutation.PATH:
                self._log_intent(review, peer)
                return web.json_response(mutation.respond(review))
            verdict = await self._decide(review, peer)
            self._metrics.record(review.operation, verdict, seconds=loop_time() - began)
            return web.json_response(respond(review, verdict))

    async def _decide(self, review: AdmissionRequest, peer: Peer) -> Verdict:
        """Return the verdict; an unexpected error denies."""
        about = description(review)
        try:
            verdict = await self._admission.decide(review)
        except Exception:  # fail closed
            log.exception("review failed unexpectedly", **about)
            return Verdict(findings=[_INTERNAL_ERROR])
        if verdict.findings:
            first = verdict.findings[0]
            reason = printable(f"{first.field}: {first.message}")
            self._log.decided("denied", peer, **about, findings=len(verdict.findings), first=reason)
        elif review.operation in _LOGGED:
            self._log.decided("admitted", peer, **about)
        return verdict

    def _log_intent(self, review: AdmissionRequest, peer: Peer) -> None:
        """Log waivers, and deletions of ended plans, which only the mutating webhook sees in each request."""
        if review.operation == "DELETE":
            self._log.decided("deletion requested", peer, **description(review))
        elif waived := waivers(review):
            self._log.decided("waived", peer, **description(review), waivers=", ".join(waived))
