"""Reading files of the upgrade repository over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Response


class Fetcher(Protocol):
    """Fetches one URL, for whoever reads the upgrade repository."""

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # part of the request
        """The answer, of any status; at most `limit` bytes, within `timeout` seconds.

        Raises Transient when no complete answer came, and Terminal when it would be longer or leads elsewhere.
        """
        ...
