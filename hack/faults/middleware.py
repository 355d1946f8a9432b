"""Fault injection and request counts between a client and a server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hack.apiserver.call import call_of
from hack.apiserver.status import StatusError
from hack.apiserver.streams import ChunkStream, WholeStream
from hack.faults.counts import NO_ANSWER, Counts
from hack.faults.rules import Delay, LoseAnswer, LoseRequest, Refuse, Rule
from hack.faults.watch_faults import Whole, disturbed
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from hack.apiserver.call import Call
    from hack.faults.rules import Action
    from hack.faults.watch_faults import Lines
    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class WriteHook(Protocol):
    """Called before and after every write.

    Numbers count the writes that pass this middleware, from 1 on. A hook may raise, which the caller of the transport
    sees, or never return: that is how a manager is killed before or after its n-th write.
    """

    async def before(self, number: int, call: Call) -> None:
        """Run before the write is sent."""
        ...

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Run after the server's response and before the caller gets it."""
        ...


class NoHook:
    """A hook without effect."""

    async def before(self, number: int, call: Call) -> None:
        """Do nothing."""

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Do nothing."""


NO_HOOK = NoHook()


@dataclass(slots=True)
class _Armed:
    rule: Rule
    #: The number of matching requests so far.
    seen: int = 0


class Middleware:
    """A `Transport` around another one; rules can be added and removed at any time."""

    def __init__(self, inner: Transport, *, random: Random) -> None:
        self._inner = inner
        self._random = random
        self._armed: list[_Armed] = []
        self.hook: WriteHook = NO_HOOK
        self.counts = Counts()
        #: The number of writes sent.
        self.writes = 0

    def add(self, rule: Rule) -> None:
        """Add a rule; it counts requests from now on."""
        self._armed.append(_Armed(rule))

    def remove(self, rule: Rule) -> None:
        """Remove a rule."""
        self._armed = [armed for armed in self._armed if armed.rule != rule]

    async def send(self, request: Request) -> Response:
        """Send a request. Raises Transient for lost requests and responses, and the hook's exceptions."""
        call = call_of(request)
        actions = self._actions(call)
        try:
            async with asyncio.timeout(request.timeout):
                response = await self._exchange(request, call, actions)
        except TimeoutError as error:
            self.counts.add(call, NO_ANSWER)
            raise Transient(f"{request.method} {request.path}: no answer in {request.timeout:g} s") from error
        except Transient:
            self.counts.add(call, NO_ANSWER)
            raise
        self.counts.add(call, response.status)
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open a stream. Raises Transient for a lost request."""
        call = call_of(request)
        if call.verb != "watch":
            yield WholeStream(await self.send(request))
            return
        actions = self._actions(call)
        try:
            refusal = await self._begin(request, actions)
        except Transient:
            self.counts.add(call, NO_ANSWER)
            raise
        if refusal is not None:
            self.counts.add(call, refusal.status)
            yield WholeStream(refusal)
            return
        async with self._inner.open(request) as stream:
            self.counts.add(call, stream.status)
            yield self._faulty(stream, actions)

    async def _begin(self, request: Request, actions: list[Action]) -> Response | None:
        try:
            async with asyncio.timeout(request.timeout):
                return await self._prelude(actions)
        except TimeoutError as error:
            raise Transient(f"{request.path}: no answer in {request.timeout:g} s") from error

    def _faulty(self, stream: Stream, actions: list[Action]) -> Stream:
        faults = [action for action in actions if not isinstance(action, (Delay, Refuse, LoseRequest, LoseAnswer))]
        if not faults or stream.status != 200:  # noqa: PLR2004
            return stream
        lines: Lines = Whole(stream.chunks())
        for fault in faults:
            lines = disturbed(lines, fault, random=self._random)
        return ChunkStream(lines, status=stream.status, headers=stream.headers)

    def _actions(self, call: Call) -> list[Action]:
        """Return the actions of all rules that match the request."""
        chosen = []
        for armed in self._armed:
            match = armed.rule.match
            if not match.describes(call):
                continue
            armed.seen += 1
            sure = match.probability >= 1
            if armed.seen >= match.nth and (sure or self._random.random() < match.probability):
                chosen.append(armed.rule.action)
        return chosen

    async def _prelude(self, actions: list[Action]) -> Response | None:
        """Apply the actions before the request is sent; return a response if it is not sent."""
        for action in actions:
            match action:
                case Delay():
                    await asyncio.sleep(self._random.uniform(action.least, action.most))
                case LoseRequest():
                    raise Transient("the connection was reset before the request arrived")
                case Refuse():
                    return _refusal(action)
                case _:
                    pass
        return None

    async def _exchange(self, request: Request, call: Call, actions: list[Action]) -> Response:
        refusal = await self._prelude(actions)
        if refusal is not None:
            return refusal
        response = await (self._write(request, call) if call.is_write else self._inner.send(request))
        if any(isinstance(action, LoseAnswer) for action in actions):
            raise Transient("the connection was reset before the answer arrived")
        return response

    async def _write(self, request: Request, call: Call) -> Response:
        self.writes += 1
        number = self.writes
        await self.hook.before(number, call)
        response = await self._inner.send(request)
        await self.hook.after(number, call, response)
        return response


def _refusal(action: Refuse) -> Response:
    return StatusError(
        code=action.status,
        reason=action.reason,
        message=action.message,
        details=dict(action.details),
        headers=dict(action.headers),
    ).response()
