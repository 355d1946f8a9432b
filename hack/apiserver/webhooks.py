"""Validating admission webhooks, called after all other stages and before the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.posting import Poster
    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage


class Webhooks:
    """Asks the webhooks of all ValidatingWebhookConfigurations."""

    def __init__(self, storage: Storage, *, poster: Poster) -> None:
        self._storage = storage
        self._poster = poster

    async def admit(
        self, route: Route, *, new: Object | None, old: Object | None, operation: Operation, options: WriteOptions
    ) -> None:
        """Return when nobody objects. Raises StatusError."""
