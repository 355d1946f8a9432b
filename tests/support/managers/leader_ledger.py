"""Who leads and who writes, as the API server sees it: every write carries its sender."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from hack.apiserver.call import Call, call_of
from hack.apiserver.streams import WholeStream
from hack.faults.forwarding import Forwarding
from upgrade_manager.kube.transport import Request, Response, Stream, Transport

LEASES = "leases.coordination.k8s.io"
#: Writes of every replica, leader or not: the lease, the webhook's certificate, reviews of scrapers.
_OF_REPLICAS = {
    LEASES,
    "secrets",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "tokenreviews.authentication.k8s.io",
    "subjectaccessreviews.authorization.k8s.io",
}
#: Here the machine-plan Secrets are, which only the leader changes.
_MACHINE_PLANS = "fleet-local"
_CREATED = 201


@dataclass
class LeaderLedger:
    """The holders of the lease, and the writes of others."""

    #: The sender of the write that gained the lease, and the identity in it; two empty texts for a release.
    holders: list[tuple[str, str]] = field(default_factory=list)
    #: Writes of a sender that did not hold the lease.
    violations: list[str] = field(default_factory=list)
    #: Senders of the leader's writes.
    writers: list[str] = field(default_factory=list)

    @property
    def leader(self) -> str:
        """The sender that holds the lease; empty without one."""
        return self.holders[-1][0] if self.holders else ""

    @property
    def identity(self) -> str:
        """The identity in the lease."""
        return self.holders[-1][1] if self.holders else ""

    def sent(self, call: Call, sender: str) -> None:
        """Check a write before it is served."""
        if call.resource in _OF_REPLICAS and call.namespace != _MACHINE_PLANS:
            return
        if sender == self.leader:
            self.writers.append(sender)
        else:
            self.violations.append(f"{sender} sends {call.verb} {call.resource} {call.name}; {self.leader} leads")

    def served(self, call: Call, sender: str, response: Response) -> None:
        """See who holds the lease after a write."""
        if call.resource == LEASES and response.status <= _CREATED:
            identity = str(json.loads(response.body)["spec"].get("holderIdentity") or "")
            if identity != self.identity:
                self.holders.append((sender if identity else "", identity))


class WatchedWrites(Forwarding):
    """A transport in front of an API server that enters writes in a ledger; those without a sender are others'."""

    def __init__(self, inner: Transport, *, ledger: LeaderLedger, sender: Callable[[Request], str]) -> None:
        super().__init__(inner)
        self._ledger = ledger
        self._sender = sender

    async def send(self, request: Request) -> Response:
        call, sender = call_of(request), self._sender(request)
        if not sender or not call.is_write:
            return await self._inner.send(request)
        self._ledger.sent(call, sender)
        response = await self._inner.send(request)
        self._ledger.served(call, sender, response)
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Pass on a request, a write by `send`."""
        if call_of(request).is_write:
            yield WholeStream(await self.send(request))
            return
        async with self._inner.open(request) as stream:
            yield stream
