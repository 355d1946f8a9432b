"""A real HTTP server of ISO files, with configurable faults."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from upgrade_manager.toolkit.iso.repository_files import HttpRepositoryFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATH = "/file"


@dataclass(slots=True, kw_only=True)
class IsoServer:
    """Serves one file at PATH."""

    content: bytes = b""
    #: Empty for a server without ETags.
    etag: str = '"1"'
    ranges: bool = True
    #: Evaluate If-Range, as HTTP requires.
    if_range: bool = True
    #: Send the whole file's length.
    length: bool = True
    #: Numbers of bytes after which the next responses break.
    cuts: list[int] = field(default_factory=list)
    #: Contents that the next responses have instead.
    changed: list[bytes] = field(default_factory=list)
    #: Statuses of the next responses.
    statuses: list[int] = field(default_factory=list)
    #: The Range headers of the requests.
    requested: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        wanted = request.headers.get("range", "")
        self.requested.append(wanted)
        if self.statuses:
            return web.Response(status=self.statuses.pop(0))
        begin = self._begin(wanted, request.headers.get("if-range", ""))
        size = len(self.content)
        if begin and begin >= size:
            return web.Response(status=416, headers={"content-range": f"bytes */{size}"})
        headers = {"etag": self.etag} if self.etag else {}
        if begin:
            headers["content-range"] = f"bytes {begin}-{size - 1}/{size}"
        response = web.StreamResponse(status=206 if begin else 200, headers=headers)
        if self.length:
            response.content_length = size - begin
        return await self._send(request, response, (self.changed.pop(0) if self.changed else self.content)[begin:])

    def _begin(self, wanted: str, condition: str) -> int:
        found = re.fullmatch(r"bytes=(\d+)-", wanted)
        if not found or not self.ranges or (self.if_range and condition and condition != self.etag):
            return 0
        return int(found[1])

    async def _send(self, request: web.Request, response: web.StreamResponse, body: bytes) -> web.StreamResponse:
        await response.prepare(request)
        cut = self.cuts.pop(0) if self.cuts else len(body)
        await response.write(body[:cut])
        if cut < len(body) and request.transport is not None:
            request.transport.close()
            return response
        await response.write_eof()
        return response


@asynccontextmanager
async def serve(server: IsoServer) -> AsyncIterator[HttpRepositoryFiles]:
    """Serve on a free port, and yield a client."""
    app = web.Application()
    app.router.add_get(PATH, server.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        async with HttpRepositoryFiles(f"http://127.0.0.1:{port}", user_agent="test") as files:
            yield files
    finally:
        await runner.cleanup()
