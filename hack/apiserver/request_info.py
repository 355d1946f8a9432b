"""A request in the terms of authorization, from its path and query alone, as the real server's RequestInfo."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hack.apiserver.identity import Attributes
from hack.faults.call import call_of

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Request

_MANY = {"list", "watch", "deletecollection"}
#: One term of a field selector that asks for one name; a comma that is escaped ends none.
_NAME = re.compile(r"(?:^|(?<!\\),)metadata\.name==?([^,=\\]*)(?:$|,)")


def attributes_of(request: Request) -> Attributes:
    """What a request wants to do.

    Only the first segment of a subresource counts (nodes/proxy, whatever is behind it). A list that asks for one name
    by its field selector is about that name.
    """
    call = call_of(request)
    if not call.resource:
        return Attributes(verb=request.method.lower(), path=request.path)
    parts = [part for part in request.path.split("/") if part]
    plural, _, group = call.resource.partition(".")
    name = call.name or (_selected(request) if call.verb in _MANY else "")
    return Attributes(
        verb=call.verb,
        group=group,
        version=parts[2 if group else 1],
        resource=plural,
        subresource=call.subresource.partition("/")[0],
        namespace=name if call.resource == "namespaces" else call.namespace,
        name=name,
    )


def _selected(request: Request) -> str:
    selector = dict(request.query).get("fieldSelector", "")
    match = _NAME.search(selector)
    return match[1] if match else ""
