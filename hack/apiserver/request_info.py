"""RBAC attributes of a request, from its path and query; compare RequestInfo of kube-apiserver."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hack.apiserver.call import call_of
from hack.apiserver.identity import Attributes

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Request

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
