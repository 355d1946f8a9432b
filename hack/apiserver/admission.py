"""What a write passes through before it is stored: an ordered list of stages, each a plain function."""

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
    """The options of one write request, as far as stages need them."""

    user: User
    subresource: str = ""
    dry_run: bool = False
    #: The fieldValidation parameter: Ignore, Warn, Strict; empty means the server's default, Warn.
    field_validation: str = ""
    #: Whether the object comes from a patch; what cannot be decoded is then the patch's fault and told in other words.
    patch: bool = False
    #: Whether the body is so large that what comes of it might not fit into the store.
    bulky: bool = False
    #: What a stage puts here reaches the client as Warning headers (code 299).
    warnings: list[str] = field(default_factory=list)


class Stage(Protocol):
    """Looks at, and perhaps changes, an object that is about to be stored.

    `new` is the stage's own to change at its top level only: nested values may be shared with the stored object and
    must be copied before a change. Never waits. Raises StatusError to refuse.
    """

    def __call__(
        self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        """The object to go on with."""
        ...


@dataclass(slots=True, kw_only=True)
class Chain:
    """The stages of a server, in two groups around the server's own preparation of an object.

    Order of a write: `mutating` (unknown fields, pruning, defaulting) on the object as it was sent or patched; then
    the server carries metadata over and drops what the endpoint may not write (status, or all but status); then
    `validating` (schema, CEL transition rules); then admission webhooks; then the store.
    """

    mutating: list[Stage] = field(default_factory=list)
    validating: list[Stage] = field(default_factory=list)

    def mutate(self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
        """Run the first group."""
        return _run(self.mutating, row, new, old, operation, options)

    def validate(
        self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        """Run the second group."""
        return _run(self.validating, row, new, old, operation, options)


def _run(
    stages: list[Stage], row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
) -> Object:
    for stage in stages:
        new = stage(row, new, old, operation, options)
    return new
