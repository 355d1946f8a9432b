"""Faults as data: matching requests and an action.

A rule is a `Match` with one action. Every request goes through all rules in their order: delays add up, the first
refusal or lost request decides, and stream actions apply one after another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.call import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A request matcher; an omitted field matches all."""

    verbs: tuple[str, ...] = ()
    #: A shell glob.
    resource: str = "*"
    #: None matches both.
    subresource: str | None = None
    #: The ordinal of the first affected request among the matching ones, from 1.
    nth: int = 1
    #: The affected share, random from the middleware's seed.
    probability: float = 1.0

    def describes(self, call: Call) -> bool:
        """Report whether the request matches, regardless of ordinals."""
        return (
            (not self.verbs or call.verb in self.verbs)
            and (self.subresource is None or self.subresource == call.subresource)
            and fnmatchcase(call.resource, self.resource)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The request waits before it is sent, uniformly between two numbers of seconds."""

    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """The server responds with an error Status and does nothing."""

    status: int
    reason: str = ""
    message: str = "refused by the fault rule"
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseRequest:
    """The connection breaks before the server sees the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAnswer:
    """The server processes the request, and the connection breaks before the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A watch ends after so many events or seconds, whichever comes first; 0 for never."""

    events: int = 0
    seconds: float = 0.0
    #: True if the stream ends properly or the connection breaks.
    clean: bool = True
    #: True if a broken connection delivers half of the next line.
    torn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """A watch sends 410 in the stream after so many events."""

    events: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """After so many events the stream stalls for so many seconds, then delivers the backlog."""

    events: int = 0
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Thin:
    """A share of a watch's events is lost, never bookmarks."""

    probability: float
    #: ADDED, MODIFIED, DELETED; empty means all.
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A share of a watch's events arrives twice."""

    probability: float


WatchAction: TypeAlias = Cut | Expire | Stall | Thin | Duplicate
Action: TypeAlias = Delay | Refuse | LoseRequest | LoseAnswer | WatchAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One fault."""

    match: Match
    action: Action
