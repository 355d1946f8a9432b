"""Impersonated requests of an administrator, for clients in the same process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hack.faults.forwarding import Forwarding

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Request, Transport


class ActingAs(Forwarding):
    """A `Transport` that impersonates a user, so that exactly that user's RBAC rules apply."""

    def __init__(self, inner: Transport, *, user: str) -> None:
        super().__init__(inner)
        self._user = user

    def outgoing(self, request: Request) -> Request:
        """Return the request, sent as the user."""
        return replace(request, headers=dict(request.headers) | {"impersonate-user": self._user})
