"""The kinds that are asked and never stored: TokenReview, SubjectAccessReview and their kin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.authorization import decide
from hack.apiserver.identity import Attributes, User
from hack.apiserver.rbac import grants
from hack.apiserver.schema.field_error import FieldError, invalid
from hack.apiserver.status import StatusError, bad_request
from hack.apiserver.status import invalid as invalid_object

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.authentication import Authenticator
    from hack.apiserver.resources import Row
    from hack.apiserver.storage import Storage

#: For whom the tokens are.
AUDIENCE = "https://kubernetes.default.svc.cluster.local"


def answer(  # all that a review may ask about
    row: Row, review: Object, *, namespace: str, user: User, authenticator: Authenticator, store: Storage
) -> Object:
    """The review with its status filled in. Raises StatusError for a review that asks nothing."""
    spec = review.get("spec") or {}
    kind = row.resource.kind
    if kind == "TokenReview":
        status = _token(spec, authenticator)
    elif kind == "SelfSubjectReview":
        status = {"userInfo": user_info(user)}
    elif kind == "SelfSubjectRulesReview":
        status = _rules(spec, user, store)
    elif kind == "SelfSubjectAccessReview":
        status = _access(row, spec, user, store)
    else:
        subject = _subject(row, spec, namespace)
        status = _access(row, spec, subject, store)
    metadata = dict(review.get("metadata") or {})
    if row.resource.namespaced:
        metadata.setdefault("namespace", namespace)
    return {"metadata": metadata} | review | {"metadata": metadata, "status": status}


def user_info(user: User) -> dict[str, Any]:
    """The user as reviews and admission requests show it."""
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in info.items() if value}


def _token(spec: dict[str, Any], authenticator: Authenticator) -> dict[str, Any]:
    token = spec.get("token")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    user = authenticator.review(token)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    audiences = [one for one in spec.get("audiences") or [AUDIENCE] if one == AUDIENCE]
    if not audiences:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user_info(user), "audiences": audiences}


def _subject(row: Row, spec: dict[str, Any], namespace: str) -> User:
    """Whom a SubjectAccessReview asks about."""
    if not spec.get("user") and not spec.get("groups"):
        raise _refused(row, invalid("spec.user", "", "at least one of user or group must be specified"))
    asked = (spec.get("resourceAttributes") or {}).get("namespace", "")
    if row.resource.namespaced and asked != namespace:
        detail = "must match metadata.namespace"
        raise _refused(row, invalid("spec.resourceAttributes.namespace", asked, detail))
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    return User(name=spec.get("user", ""), uid=spec.get("uid", ""), groups=groups, extra=extra)


def _access(row: Row, spec: dict[str, Any], user: User, store: Storage) -> dict[str, Any]:
    verdict = decide(user, _attributes(row, spec), store)
    return {"allowed": verdict.allowed} | ({"reason": verdict.reason} if verdict.reason else {})


def _attributes(row: Row, spec: dict[str, Any]) -> Attributes:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _refused(row, invalid("spec.resourceAttributes", None, detail))
    if resource is not None and other is not None:
        shown = {"Path": other.get("path", ""), "Verb": other.get("verb", "")}
        detail = "cannot be specified in combination with resourceAttributes"
        raise _refused(row, invalid("spec.nonResourceAttributes", shown, detail))
    if resource is None:
        return Attributes(verb=(other or {}).get("verb", ""), path=(other or {}).get("path", ""))
    fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(**{field: str(resource.get(field) or "") for field in fields})


def _rules(spec: dict[str, Any], user: User, store: Storage) -> dict[str, Any]:
    if not spec.get("namespace"):
        raise bad_request("no namespace on request")
    found = list(grants(user, spec["namespace"], store))
    missing = [grant.missing for grant in found if grant.missing]
    status: dict[str, Any] = {
        "resourceRules": [grant.rule for grant in found if grant.rule.get("resources")],
        "nonResourceRules": [grant.rule for grant in found if grant.rule.get("nonResourceURLs")],
        "incomplete": bool(missing),
    }
    told = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
    return status | ({"evaluationError": told} if missing else {})


def _refused(row: Row, error: FieldError) -> StatusError:
    """As the real server says it, which does not name the kind here."""
    return invalid_object(replace(row.resource, kind=""), "", [error])
