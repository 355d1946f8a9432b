"""Responses to one of a client's methods that get lost, although the API server has carried the requests out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Transient


@contextmanager
def responses_lost(client: Client, method: str) -> Iterator[None]:
    send = getattr(client, method)

    async def lose(*given: Any, **options: Any) -> Any:
        await send(*given, **options)
        raise Transient("response lost")

    setattr(client, method, lose)
    yield
    setattr(client, method, send)
