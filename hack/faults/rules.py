"""Faults as data: matching requests and an action.

A rule is a `Match` with one action. Every request goes through all rules in their order: delays add up, the first
refusal or lost request decides, and stream actions apply one after another.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.faults.call import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A request matcher; patterns are shell globs, and an omitted field matches all."""

    verbs: tuple[str, ...] = ()
    resource: str = "*"
    #: None matches both.
    subresource: str | None = None
    namespace: str = "*"
    name: str = "*"
    user_agent: str = "*"
    path: str = "*"
    #: The ordinal of the first affected request among the matching ones, from 1.
    nth: int = 1
    #: The number of affected requests from the n-th on; 0 means all.
    times: int = 0
    #: The affected share, random from the middleware's seed.
    probability: float = 1.0

    def describes(self, call: Call) -> bool:
        """Report whether the request matches, regardless of ordinals."""
        return (
            (not self.verbs or call.verb in self.verbs)
            and (self.subresource is None or self.subresource == call.subresource)
            and fnmatchcase(call.resource, self.resource)
            and fnmatchcase(call.namespace, self.namespace)
            and fnmatchcase(call.name, self.name)
            and fnmatchcase(call.user_agent, self.user_agent)
            and fnmatchcase(call.path, self.path)
        )

    def counts(self, number: int) -> bool:
        """Report whether the request with this ordinal is affected."""
        return number >= self.nth and (not self.times or number < self.nth + self.times)


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
    #: Whether the stream ends properly or the connection breaks.
    clean: bool = True
    #: Whether a broken connection delivers half of the next line.
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
class Hide:
    """Objects disappear from a watch with a chosen event, until the same user agent lists the kind again."""

    #: A glob over object names.
    name: str = "*"
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A share of a watch's events arrives twice."""

    probability: float


WatchAction: TypeAlias = Cut | Expire | Stall | Thin | Hide | Duplicate
Action: TypeAlias = Delay | Refuse | LoseRequest | LoseAnswer | WatchAction

_ACTIONS: dict[str, type[Action]] = {
    "delay": Delay,
    "refuse": Refuse,
    "lose-request": LoseRequest,
    "lose-answer": LoseAnswer,
    "cut": Cut,
    "expire": Expire,
    "stall": Stall,
    "thin": Thin,
    "hide": Hide,
    "duplicate": Duplicate,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One fault."""

    match: Match
    action: Action


def rule(data: Mapping[str, Any]) -> Rule:
    """Build a rule from a scenario: `{match: {verbs: [patch], nth: 3}, refuse: {status: 503}}`. Raises ValueError."""
    names = [name for name in data if name != "match"]
    if len(names) != 1 or names[0] not in _ACTIONS:
        raise ValueError(f"a fault has exactly one of {', '.join(_ACTIONS)}, this one has {', '.join(names) or 'none'}")
    action = _ACTIONS[names[0]]
    return Rule(match=_built(Match, data.get("match") or {}), action=_built(action, data[names[0]] or {}))


def _built(kind: type[Any], data: Mapping[str, Any]) -> Any:
    known = {entry.name for entry in fields(kind)}
    unknown = [name for name in data if name not in known]
    if unknown:
        raise ValueError(f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(sorted(known)) or 'nothing'}")
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in data.items()})
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from error
