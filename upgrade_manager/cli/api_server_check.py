"""The first request to the API server: a rejected configuration ends the start, any other failure is retried.

run.py and session.py make it before anything else.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.errors import UNTRUSTED, KubeError, NotFound, Terminal
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.kube.retry import Backoff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from upgrade_manager.kube.client import Client

#: Seconds for the response.
RESPONSE_TIMEOUT = 15.0
CRD_NOT_FOUND = "UpgradePlan CRD not found. Run kubectl apply -k deploy/crds"

_log = structlog.get_logger(__name__)


class StartError(Exception):
    """The API server rejects the manager's configuration; `str()` is one sentence for the user."""


class ApiServerCheck:
    """Waits until the API server serves UpgradePlans, for example while its node reboots."""

    def __init__(self, client: Client, *, server: str, random: Random) -> None:
        self._client = client
        self._server = server
        self._random = random
        self._others: list[Callable[[], Awaitable[None]]] = []
        self._passed = asyncio.Event()

    def add(self, check: Callable[[], Awaitable[None]]) -> None:
        """Add a check of the cluster behind a server that is available, which may raise StartError."""
        self._others.append(check)

    async def attempt(self) -> bool:
        """Send one request; return False if a later one may succeed. Raises StartError if none will."""
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                await self._client.raw("GET", UPGRADE_PLANS.path(), query=(("limit", "1"),))
                for check in self._others:
                    await check()
        except (KubeError, TimeoutError) as error:
            if _is_permanent(error):
                raise StartError(f"API server {self._server}: {cause(error)}") from error
            _log.warning("API server not available; retrying", server=self._server, error=cause(error))
            return False
        self._passed.set()
        return True

    async def run(self) -> None:
        """Repeat the request until it succeeds. Raises StartError."""
        backoff = Backoff(random=self._random)
        while not await self.attempt():  # noqa: ASYNC110  # only a request shows the server
            await asyncio.sleep(backoff.failed())
        _log.info("API server available", server=self._server)

    async def passed(self) -> None:
        """Wait until a request has succeeded."""
        await self._passed.wait()


def cause(error: KubeError | TimeoutError) -> str:
    """Return why a request for UpgradePlans failed, and what to do, for the user."""
    if isinstance(error, NotFound):
        return CRD_NOT_FOUND
    if isinstance(error, TimeoutError):
        return f"no response within {RESPONSE_TIMEOUT:.0f} s"
    return f"{error}. Check the kubeconfig or service account" if _is_permanent(error) else str(error)


def _is_permanent(error: KubeError | TimeoutError) -> bool:
    """Return True if the server or the certificate check rejects the configuration."""
    if isinstance(error, TimeoutError):
        return False
    is_rejected = isinstance(error, Terminal | NotFound) or error.status == HTTPStatus.UNAUTHORIZED
    return is_rejected or error.reason == UNTRUSTED
