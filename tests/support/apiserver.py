"""An API server for tests: virtual wall clock, fixed seed, no webhooks to reach."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from hack.apiserver.server import ApiServer
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from hack.apiserver.posting import Poster, Target
    from upgrade_manager.kube.transport import Response

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def virtual_now() -> datetime:
    """The loop's time as a date."""
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


class NoPoster:
    """Reaches no webhook."""

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109, ARG002
        """Fail."""
        raise Transient(f"{target.url}: no route")


def make_server(seed: int = 1, *, poster: Poster | None = None) -> ApiServer:
    """A fresh server; call it while a loop runs."""
    return ApiServer(now=virtual_now, random=Random(seed), poster=poster or NoPoster())
