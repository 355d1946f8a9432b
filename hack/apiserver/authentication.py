"""Bearer tokens and the users behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.authorization import authorize
from hack.apiserver.identity import ADMIN, ANONYMOUS, Attributes, User
from hack.apiserver.status import bad_request, unauthorized

if TYPE_CHECKING:
    from hack.apiserver.storage import Storage
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


_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


def acting(user: User, request: Request, store: Storage) -> User:
    """Return the impersonated user, else the sender. Raises StatusError 400 or 403."""
    name = request.headers.get("impersonate-user", "")
    groups = tuple(group for group in request.headers.get("impersonate-group", "").split(",") if group)
    if any(header.startswith(("impersonate-uid", "impersonate-extra-")) for header in request.headers):
        raise bad_request("impersonation of a uid or of extra fields is not offered by the embedded API server")
    if not name:
        if groups:
            raise bad_request("requested groups without impersonating a user")
        return user
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if name.startswith(_ACCOUNT):
        attributes = Attributes(verb="impersonate", resource="serviceaccounts", namespace=namespace, name=account)
        groups = groups or ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    else:
        attributes = Attributes(verb="impersonate", resource="users", name=name)
    authorize(user, attributes, store)
    for group in groups if request.headers.get("impersonate-group") else ():
        authorize(user, Attributes(verb="impersonate", resource="groups", name=group), store)
    implied = _UNAUTHENTICATED if name == ANONYMOUS.name else _AUTHENTICATED
    return User(name=name, groups=groups if implied in groups else (*groups, implied))
