"""Request counts by verb, resource, client and status code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.call import Call

#: The code of a request without a response.
NO_ANSWER = 0


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Count:
    """The key of a count."""

    verb: str
    resource: str
    subresource: str
    user_agent: str
    code: int


class Counts:
    """Counts requests; a watch counts when it is opened."""

    def __init__(self) -> None:
        self._counts: Counter[Count] = Counter()

    def add(self, call: Call, code: int) -> None:
        """Count one request."""
        key = Count(
            verb=call.verb,
            resource=call.resource,
            subresource=call.subresource,
            user_agent=call.user_agent,
            code=code,
        )
        self._counts[key] += 1

    def total(self, **wanted: str | int) -> int:
        """Return the number of requests with these values of Count's fields."""
        return sum(
            count
            for key, count in self._counts.items()
            if all(getattr(key, field) == value for field, value in wanted.items())
        )

    def __iter__(self) -> Iterator[tuple[Count, int]]:
        return iter(sorted(self._counts.items()))

    def clear(self) -> None:
        """Reset the counts."""
        self._counts.clear()
