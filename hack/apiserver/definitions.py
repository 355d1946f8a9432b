"""Creates CustomResourceDefinitions without requests: most of a simulated cluster's start would be their admission."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

from hack.apiserver.admission import WriteOptions
from hack.apiserver.builtin import ROWS
from hack.apiserver.crds import CRDS, crd_stage
from hack.apiserver.identity import ADMIN
from hack.apiserver.metadata import decoded, identity, initialized
from hack.apiserver.route import Route
from hack.apiserver.schema.facets import ByIdentity
from hack.apiserver.schema.stages import shape, validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hack.apiserver.admission import Object
    from hack.apiserver.storage import Storage

_ROW = next(row for row in ROWS if row.resource.name == CRDS.name)
_OPTIONS = WriteOptions(user=ADMIN, field_validation="Strict")


def define(definitions: Iterable[Object], storage: Storage, *, now: Callable[[], datetime], random: Random) -> None:
    """Store new definitions as create requests would; servers of one process share what admission makes of them.

    Admission webhooks are not called. The definitions must not change afterwards. Raises StatusError.
    """
    for each in definitions:
        admitted = _admitted(each)
        metadata = admitted["metadata"] | identity(now=now(), random=random)
        storage.write(CRDS.name, ("", metadata["name"]), admitted | {"metadata": metadata})


def _admit(definition: Object) -> Object:
    """Return the definition as a create stores it, with another identity."""
    new = decoded(definition, Route(row=_ROW, verb="create"))
    for stage in (shape, crd_stage):
        new = stage(_ROW, new, None, "CREATE", _OPTIONS)
    new = initialized(_ROW, new, now=datetime.now(UTC), random=Random())
    return validate(_ROW, new, None, "CREATE", _OPTIONS)


_admitted = ByIdentity(_admit)
