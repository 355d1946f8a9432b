"""Acting as somebody else: kubectl --as, --as-group, --as-uid and --as-user-extra."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from hack.apiserver.authorization import authorize
from hack.apiserver.identity import ANONYMOUS, Attributes, User
from hack.apiserver.status import bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.storage import Storage
    from upgrade_manager.kube.transport import Request

_EXTRA = "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


def acting(user: User, request: Request, store: Storage) -> User:
    """The user as whom a request is made, which is mostly the one who makes it. Raises StatusError 400 or 403."""
    name = request.headers.get("impersonate-user", "")
    groups = tuple(group for group in request.headers.get("impersonate-group", "").split(",") if group)
    uid = request.headers.get("impersonate-uid", "")
    extra = {
        unquote(header.removeprefix(_EXTRA)): tuple(value.split(","))
        for header, value in request.headers.items()
        if header.startswith(_EXTRA)
    }
    if not name:
        if groups or uid or extra:
            raise bad_request("requested groups, a uid or extra without impersonating a user")
        return user
    for wanted in _wanted(name, groups, uid, extra):
        authorize(user, wanted, store)
    return User(name=name, uid=uid, groups=_completed(name, groups), extra=extra)


def _wanted(name: str, groups: tuple[str, ...], uid: str, extra: dict[str, tuple[str, ...]]) -> Iterator[Attributes]:
    """What somebody must be allowed to impersonate, in the order in which it is asked."""
    account = _account(name)
    if account:
        namespace, short = account
        yield Attributes(verb="impersonate", resource="serviceaccounts", namespace=namespace, name=short)
    else:
        yield Attributes(verb="impersonate", resource="users", name=name)
    for group in groups:
        yield Attributes(verb="impersonate", resource="groups", name=group)
    for key, values in extra.items():
        for value in values:
            yield Attributes(
                verb="impersonate", group=_AUTHENTICATION, resource="userextras", subresource=key, name=value
            )
    if uid:
        yield Attributes(verb="impersonate", group=_AUTHENTICATION, resource="uids", name=uid)


def _account(name: str) -> tuple[str, str] | None:
    namespace, colon, short = name.removeprefix(_ACCOUNT).partition(":")
    return (namespace, short) if name.startswith(_ACCOUNT) and colon and ":" not in short else None


def _completed(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups with those that everybody of the kind is in."""
    account = _account(name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    everybody = _UNAUTHENTICATED if name == ANONYMOUS.name else _AUTHENTICATED
    return groups if everybody in groups else (*groups, everybody)
