"""How many requests were made, by whom, for what and with which answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.faults.call import Call

#: The code of a request that got no answer.
NO_ANSWER = 0


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Count:
    """What is counted together."""

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
        """How many requests have these values, named as the fields of Count."""
        return sum(
            count
            for key, count in self._counts.items()
            if all(getattr(key, field) == value for field, value in wanted.items())
        )

    def __iter__(self) -> Iterator[tuple[Count, int]]:
        return iter(sorted(self._counts.items()))

    def clear(self) -> None:
        """Begin anew."""
        self._counts.clear()
