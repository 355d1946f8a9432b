"""The table that drives the API server: a kind is a row, never code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from upgrade_manager.kube.resources import Resource

#: What a client can do with a kind that is stored, in the order in which discovery lists it.
STORED_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
#: Kinds like TokenReview, that are answered and never stored.
REVIEW_VERBS = ("create",)

_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One printer column, as in a CustomResourceDefinition."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0
    #: Shown where there is no value; None leaves the cell null, as for custom kinds.
    absent: str | None = None
    #: The type that clients are told, where it differs from how the value is shown.
    declared: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """All that the server knows about one kind in one version."""

    resource: Resource
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STORED_VERBS
    #: Whether status is written through /status only.
    status_subresource: bool = False
    #: Whether a create keeps the status in spite of the subresource, as that of a Node does.
    status_on_create: bool = False
    #: Makes the status that every new object gets instead of what it brings; None for none.
    initial_status: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    #: The openAPIV3Schema of a custom kind; a built-in one has a Go type instead (schema/gotypes.py).
    schema: dict[str, Any] | None = None
    columns: tuple[Column, ...] = ()
    #: Whether a CustomResourceDefinition made it: no strategic merge patch, no unconditional update.
    custom: bool = False
    #: Field selector paths besides metadata.name and metadata.namespace.
    selectable: tuple[str, ...] = ()
    #: How a selector of another field is refused, with {} for the field; empty for the usual words.
    unselectable: str = ""
    #: Whether metadata.generation counts the changes of the desired state.
    generation: bool = False
    #: Whether a change of the annotations counts for it too, as for a Deployment.
    annotated_generation: bool = False
    #: The metadata of a built-in kind that a write of its status leaves alone; a custom kind's stays as it is.
    status_keeps: tuple[str, ...] = ()
    #: Whether an update of an object that does not exist creates it.
    create_on_update: bool = False
    #: The warning for a delete that does not say what becomes of the dependents.
    orphan_warning: str = ""
    #: Whether an update without a resourceVersion is taken.
    unconditional_update: bool = True
    #: Whether a delete without a propagation policy leaves the dependents, as batch/v1 Jobs do.
    orphan_by_default: bool = False
    #: Whether a delete waits for a grace period, as that of a running Pod does.
    graceful: bool = False
    #: A finalizer that every delete puts on the object, for a cleanup that the server does itself.
    deletion_finalizer: str = ""

    @property
    def known_finalizers(self) -> bool:
        """Whether finalizers without a domain are refused unless Kubernetes knows them."""
        return not self.custom and self.resource.group not in {"apiextensions.k8s.io", "apiregistration.k8s.io"}

    @property
    def storage(self) -> str:
        """The name of the collection in the store, the same for all versions of a kind."""
        return self.resource.name

    @property
    def selects_itself(self) -> bool:
        """Whether the kind has field selectors of its own: it then says in its own words what it does not have."""
        return self.custom or bool(self.selectable)


class ResourceTable:
    """Rows by group, version and plural; discovery, routing and storage all read it."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        #: In the order of adding, which is the order of discovery.
        self._rows: dict[tuple[str, str, str], Row] = {}
        self._kinds: dict[tuple[str, str, str], Row] = {}
        #: Counts changes, so that whoever derives documents from the table knows when to derive them again.
        self.revision = 0
        for row in rows:
            self.add(row)

    @classmethod
    def builtin(cls) -> ResourceTable:
        """A table with the kinds that every Kubernetes server has."""
        from hack.apiserver.builtin import ROWS  # noqa: PLC0415  # the rows are made of this module's classes

        return cls(ROWS)

    def add(self, row: Row) -> None:
        """Take a row in, or put it in the place of the one for the same group, version and plural."""
        resource = row.resource
        self._rows[resource.group, resource.version, resource.plural] = row
        self._kinds[resource.group, resource.version, resource.kind] = row
        self.revision += 1

    def replace(self, group: str, plural: str, rows: Iterable[Row]) -> None:
        """Make these rows all the versions of a kind."""
        self.remove(group, plural)
        for row in rows:
            self.add(row)

    def remove(self, group: str, plural: str) -> None:
        """Take all versions of a kind out."""
        for key in [key for key in self._rows if key[0] == group and key[2] == plural]:
            resource = self._rows.pop(key).resource
            self._kinds.pop((group, resource.version, resource.kind), None)
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Row | None:
        """The row of one version."""
        return self._rows.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> Row | None:
        """The row of one version, by what objects carry."""
        return self._kinds.get((group, version, kind))

    def stored(self, storage: str) -> Row | None:
        """The row of the preferred version of a collection, by the collection's name."""
        rows = [row for row in self._rows.values() if row.resource.name == storage]
        return min(rows, key=lambda row: version_priority(row.resource.version), default=None)

    def versions(self, group: str) -> list[str]:
        """The versions of a group, the preferred one first."""
        return sorted({key[1] for key in self._rows if key[0] == group}, key=version_priority)

    def groups(self) -> list[str]:
        """The groups in the order of their first rows; the core group is the empty string."""
        return list(dict.fromkeys(key[0] for key in self._rows))

    def rows(self, group: str, version: str) -> list[Row]:
        """The rows of one version of a group."""
        return [row for key, row in self._rows.items() if key[:2] == (group, version)]

    def __iter__(self) -> Iterator[Row]:
        return iter(list(self._rows.values()))

    def __len__(self) -> int:
        return len(self._rows)


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort key: GA before beta before alpha, higher numbers first, then strange names by alphabet."""
    match = _VERSION.match(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version)
