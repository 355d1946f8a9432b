"""Results derived from JSON that never changes, computed once per process: `facets` and `definitions` use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

V = TypeVar("V")

Object = dict[str, Any]

#: The size of a cache; more than any cluster has kinds.
_MOST = 512


class ByIdentity(Generic[V]):
    """A function whose results are kept by the identity of its argument, which must not change afterwards."""

    def __init__(self, compute: Callable[[Object], V]) -> None:
        self._compute = compute
        #: By id; the argument stays alive, so that no other one gets its id.
        self._known: dict[int, tuple[Object, V]] = {}

    def __call__(self, value: Object) -> V:
        """Return the result for this very argument."""
        known = self._known.get(id(value))
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[id(value)] = (value, self._compute(value))
        return known[1]
