"""Role-based access control over the Roles and bindings in the store, and what it evaluates of a request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.call import call_of
from hack.apiserver.identity import Attributes
from hack.apiserver.rbac import allows, grants
from hack.apiserver.status import StatusError

if TYPE_CHECKING:
    from hack.apiserver.identity import User
    from hack.apiserver.storage import Storage
    from upgrade_manager.kube.transport import Request


#: Members are allowed everything.
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An RBAC decision with its reason."""

    allowed: bool
    reason: str


def decide(user: User, attributes: Attributes, store: Storage) -> Verdict:
    """Decide one request; RBAC has no rules that deny."""
    if MASTERS in user.groups:
        return Verdict(allowed=True, reason="")
    missing = []
    for grant in grants(user, attributes.namespace, store):
        if grant.missing:
            missing.append(grant.missing)
        elif allows(grant.rule, attributes):
            return Verdict(allowed=True, reason=f"RBAC: {grant.because}")
    if not missing:
        return Verdict(allowed=False, reason="")
    shown = missing[0] if len(missing) == 1 else f"[{', '.join(dict.fromkeys(missing))}]"
    return Verdict(allowed=False, reason=f"RBAC: {shown}")


def authorize(user: User, attributes: Attributes, store: Storage) -> None:
    """Return when the user is allowed. Raises StatusError 403."""
    verdict = decide(user, attributes, store)
    if not verdict.allowed:
        raise refusal(user, attributes, verdict.reason)


def refusal(user: User, attributes: Attributes, reason: str) -> StatusError:
    """Return the 403 with the message of kube-apiserver."""
    what = _sentence(user, attributes) + (f": {reason}" if reason else "")
    if not attributes.is_resource:
        return StatusError(code=403, reason="Forbidden", message=f"forbidden: {what}", details={})
    kind = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    subject = f'{kind} "{attributes.name}"' if attributes.name else kind
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return StatusError(
        code=403,
        reason="Forbidden",
        message=f"{subject} is forbidden: {what}",
        details={key: value for key, value in details.items() if value},
    )


def _sentence(user: User, attributes: Attributes) -> str:
    who = f'User "{user.name}" cannot {attributes.verb}'
    if not attributes.is_resource:
        return f'{who} path "{attributes.path}"'
    resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return f'{who} resource "{resource}" in API group "{attributes.group}" {where}'


_MANY = {"list", "watch", "deletecollection"}
#: A field selector's term for metadata.name; an escaped comma does not end it.
_NAME = re.compile(r"(?:^|(?<!\\),)metadata\.name==?([^,=\\]*)(?:$|,)")


def attributes_of(request: Request) -> Attributes:
    """Return the RBAC attributes of a request.

    Only the first segment of a subresource counts (nodes/proxy). A list with a field selector for metadata.name has
    that name.
    """
    call = call_of(request)
    if not call.resource:
        return Attributes(verb=request.method.lower(), path=request.path)
    plural, _, group = call.resource.partition(".")
    name = call.name or (_selected(request) if call.verb in _MANY else "")
    return Attributes(
        verb=call.verb,
        group=group,
        resource=plural,
        subresource=call.subresource.partition("/")[0],
        namespace=name if call.resource == "namespaces" else call.namespace,
        name=name,
    )


def _selected(request: Request) -> str:
    selector = dict(request.query).get("fieldSelector", "")
    match = _NAME.search(selector)
    return match[1] if match else ""
