"""Records the requests of a manager and their times."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.call import call_of
from hack.faults.forwarding import Forwarding

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Request, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request or retry."""

    #: The loop's time at which it was sent.
    at: float
    verb: str
    #: With the subresource.
    resource: str


class RequestLog(Forwarding):
    """A `Transport` that records every request before it is sent."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.requests: list[LoggedRequest] = []

    def between(self, began: float, ended: float) -> Counter[str]:
        """Count the requests of each kind in that time: `watch jobs.batch`."""
        return Counter(f"{one.verb} {one.resource}" for one in self.requests if began <= one.at < ended)

    def total(self) -> int:
        """Count all requests but the lease's."""
        return sum("leases" not in one.resource for one in self.requests)

    def outgoing(self, request: Request) -> Request:
        """Record the request."""
        call = call_of(request)
        resource = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
        self.requests.append(LoggedRequest(at=asyncio.get_running_loop().time(), verb=call.verb, resource=resource))
        return request
