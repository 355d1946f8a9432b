"""The ordered stages of a write before it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from hack.apiserver.identity import User
    from hack.apiserver.resources import Row

Operation = Literal["CREATE", "UPDATE", "DELETE"]
Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of one write request that stages read."""

    user: User
    subresource: str = ""
    dry_run: bool = False
    #: The fieldValidation parameter: Ignore, Warn, Strict; empty means the server's default, Warn.
    field_validation: str = ""
    #: True if the object comes from a patch; decoding errors are then worded for the patch.
    patch: bool = False
    #: Sent to the client as Warning headers (code 299).
    warnings: list[str] = field(default_factory=list)


class Stage(Protocol):
    """One admission step: check an object before it is stored, and return it or a changed copy.

    `new` may be changed at its top level only: nested values may be shared with the stored object and must be copied
    before a change. Never waits. Raises StatusError to refuse.
    """

    def __call__(
        self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        """Return the object for the next stage."""
        ...


@dataclass(slots=True, kw_only=True)
class Chain:
    """The stages of a server, in two groups around the server's preparation of an object.

    Order of a write: `mutating` (unknown fields, pruning, defaulting) on the object as it was sent or patched; then
    mutating webhooks; then the server carries metadata over and drops what the endpoint may not write (status, or all
    but status); then `validating` (schema, CEL transition rules); then validating webhooks; then the store.
    """

    mutating: list[Stage] = field(default_factory=list)
    validating: list[Stage] = field(default_factory=list)

    def mutate(self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
        """Run the mutating stages."""
        return _run(self.mutating, row, new, old, operation, options)

    def validate(
        self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        """Run the validating stages."""
        return _run(self.validating, row, new, old, operation, options)


def _run(
    stages: list[Stage], row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
) -> Object:
    for stage in stages:
        new = stage(row, new, old, operation, options)
    return new
