"""The probes' server: `/healthz` and `/readyz`, `?verbose`, `?exclude=NAME`, and a sub-path for each check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from upgrade_manager.runtime.healthz import Answer, CheckGroup
from upgrade_manager.runtime.http_server import HttpServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.runtime.bindaddress import BindAddress

_NOT_FOUND = Answer(404, "404 page not found\n")


class Probes:
    """What kubelet asks: `healthz`, whether to restart us, and `readyz`, whether to send us requests."""

    def __init__(self) -> None:
        self.healthz = CheckGroup("healthz")
        self.readyz = CheckGroup("readyz")

    def server(self, address: BindAddress) -> HttpServer:
        """A plain HTTP server for both."""
        return HttpServer("probes", app=self.app(), address=address)

    def app(self) -> web.Application:
        """The routes."""
        app = web.Application()
        for group in (self.healthz, self.readyz):
            for path in (f"/{group.name}", f"/{group.name}/"):
                app.router.add_get(path, _together(group))
            app.router.add_get(f"/{group.name}/{{check}}", _alone(group))
        return app


def _together(group: CheckGroup) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        exclude = request.query.getall("exclude", [])
        return _respond(await group.answer(verbose="verbose" in request.query, exclude=exclude))

    return handle


def _alone(group: CheckGroup) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        return _respond(await group.answer_one(request.match_info["check"]) or _NOT_FOUND)

    return handle


def _respond(answer: Answer) -> web.Response:
    return web.Response(
        status=answer.status, text=answer.text, charset="utf-8", headers={"X-Content-Type-Options": "nosniff"}
    )
