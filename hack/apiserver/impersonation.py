"""Impersonation of a user and of groups by request headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.authorization import authorize
from hack.apiserver.identity import ANONYMOUS, Attributes, User
from hack.apiserver.status import bad_request

if TYPE_CHECKING:
    from hack.apiserver.storage import Storage
    from upgrade_manager.kube.transport import Request

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
