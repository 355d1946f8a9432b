"""An API server for tests: virtual wall clock, fixed seed, no webhooks to reach."""

from __future__ import annotations

from random import Random

from hack.apiserver.posting import NoPoster, Poster
from hack.apiserver.server import ApiServer
from hack.virtual_time import virtual_now


def make_server(seed: int = 1, *, poster: Poster | None = None) -> ApiServer:
    """A fresh server; call it while a loop runs."""
    return ApiServer(now=virtual_now, random=Random(seed), poster=poster or NoPoster())
