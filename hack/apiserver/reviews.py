"""TokenReview, SubjectAccessReview and SelfSubjectAccessReview, which are not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.authorization import decide
from hack.apiserver.identity import RESOURCE_ATTRIBUTES, Attributes, User
from hack.apiserver.status import bad_request

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.authentication import Authenticator
    from hack.apiserver.resources import Row
    from hack.apiserver.storage import Storage

#: The audience of all tokens.
AUDIENCE = "https://kubernetes.default.svc.cluster.local"


def reviewed(row: Row, review: Object, *, user: User, authenticator: Authenticator, store: Storage) -> Object:
    """Return the review with its status; `user` sends it. Raises StatusError for a review without a subject."""
    spec = review.get("spec") or {}
    match row.resource.kind:
        case "TokenReview":
            status = _token(spec, authenticator)
        case "SelfSubjectAccessReview":
            status = _verdict(user, spec, store)
        case _:
            status = _access(spec, store)
    return {"metadata": review.get("metadata") or {}} | review | {"status": status}


def user_info(user: User) -> dict[str, Any]:
    """Return the user as reviews and admission requests show it."""
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in info.items() if value}


def _token(spec: dict[str, Any], authenticator: Authenticator) -> dict[str, Any]:
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    user = authenticator.review(spec["token"])
    if user is None or AUDIENCE not in (spec.get("audiences") or [AUDIENCE]):
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user_info(user), "audiences": [AUDIENCE]}


def _access(spec: dict[str, Any], store: Storage) -> dict[str, Any]:
    if not spec.get("user") and not spec.get("groups"):
        raise bad_request("spec.user: at least one of user or group must be specified")
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    user = User(name=spec.get("user", ""), uid=spec.get("uid", ""), groups=groups, extra=extra)
    return _verdict(user, spec, store)


def _verdict(user: User, spec: dict[str, Any], store: Storage) -> dict[str, Any]:
    verdict = decide(user, _attributes(spec), store)
    return {"allowed": verdict.allowed} | ({"reason": verdict.reason} if verdict.reason else {})


def _attributes(spec: dict[str, Any]) -> Attributes:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (other is None):
        raise bad_request("spec: exactly one of nonResourceAttributes or resourceAttributes must be specified")
    if resource is None:
        return Attributes(verb=(other or {}).get("verb", ""), path=(other or {}).get("path", ""))
    return Attributes(**{field: str(resource.get(field) or "") for field in RESOURCE_ATTRIBUTES})
