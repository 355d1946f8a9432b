"""Bearer tokens and the users behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.identity import ADMIN, ANONYMOUS
from hack.apiserver.status import unauthorized

if TYPE_CHECKING:
    from hack.apiserver.identity import User
    from upgrade_manager.kube.transport import Request


class Authenticator:
    """Knows the tokens; one per server."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}

    def register(self, token: str, user: User) -> None:
        """Let a token stand for a user."""
        self._users[token] = user

    def forget(self, token: str) -> None:
        """Let a token stand for nobody, as one that has expired."""
        self._users.pop(token, None)

    def identify(self, request: Request) -> User:
        """The user behind a request. Raises StatusError 401 for a token that is not known.

        No authorization header at all is the process itself: ADMIN. An empty one is ANONYMOUS.
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
        """The user behind a token, for TokenReview."""
        return self._users.get(token)
