"""Role-based access control over the Roles and bindings in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.apiserver.identity import Attributes, User
    from hack.apiserver.storage import Storage


def authorize(user: User, attributes: Attributes, store: Storage) -> None:
    """Return when the user may do it. Raises StatusError 403."""
    _ = (user, attributes, store)
