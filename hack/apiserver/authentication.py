"""Bearer tokens and the users behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.identity import ADMIN, ANONYMOUS
from hack.apiserver.status import unauthorized

if TYPE_CHECKING:
    from hack.apiserver.identity import User
    from upgrade_manager.kube.transport import Request


class Authenticator:
    """The bearer tokens of one server."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}

    def register(self, token: str, user: User) -> None:
        """Add a token of a user."""
        self._users[token] = user

    def forget(self, token: str) -> None:
        """Remove a token, as when it expires."""
        self._users.pop(token, None)

    def identify(self, request: Request) -> User:
        """Return the user of a request. Raises StatusError 401 for an unknown token.

        A request without an authorization header comes from this process: ADMIN. An empty header is ANONYMOUS.
        """
        header = request.headers.get("authorization")
        if header is None:
            return ADMIN
        if not header:
            return ANONYMOUS
        user = self.review(header.removeprefix("Bearer ").strip())
        if user is None:
            raise unauthorized()
        return user

    def review(self, token: str) -> User | None:
        """Return the user of a token, for TokenReview."""
        return self._users.get(token)
