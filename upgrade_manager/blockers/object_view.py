"""The objects that finders read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection


class NotSynced(Exception):  # a state, as in client-go, not an error
    """The objects are being listed; a later call returns them."""


class Unreadable(Exception):  # a state, like NotSynced, not an error
    """The objects cannot be listed; the message says why."""


class View(Protocol):
    """Reads objects for the finders without waiting; a selection is watched while finders read it."""

    @property
    def now(self) -> datetime:
        """The time of this reconcile."""
        ...

    @property
    def is_current(self) -> bool:
        """False while the objects from which the waits are derived may be out of date."""
        ...

    def objects(self, selection: Selection) -> Sequence[Object]:
        """Return the selected objects. Raises NotSynced and Unreadable."""
        ...

    def objects_by(self, selection: Selection, function: Callable[[Object], str], value: str) -> Sequence[Object]:
        """Return those of the selected objects with this result of the function; see `Store.keys_by`."""
        ...
