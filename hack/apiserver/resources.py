"""The resource table: one row per kind and version; the server has no code per kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from upgrade_manager.kube.resources import Resource

#: The verbs of stored kinds in the order of discovery.
STORED_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
#: Kinds like TokenReview, which are not stored.
REVIEW_VERBS = ("create",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One printer column, as in a CustomResourceDefinition."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0
    #: The text of a cell without a value; None leaves the cell null, as for custom kinds.
    absent: str | None = None
    #: The declared type, where it differs from how the value is formatted.
    declared: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The properties of one kind in one version."""

    resource: Resource
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STORED_VERBS
    #: True if status has a subresource.
    status_subresource: bool = False
    #: True if `kubectl scale` changes its replicas.
    scale_subresource: bool = False
    #: True if a create keeps the status in spite of the subresource, as for a Node.
    status_on_create: bool = False
    #: The status of a new object, which replaces the one in the request; None keeps that.
    initial_status: dict[str, Any] | None = None
    #: The openAPIV3Schema of a custom kind; a built-in kind has a Go type (schema/go_types.py).
    schema: dict[str, Any] | None = None
    columns: tuple[Column, ...] = ()
    #: True if the kind comes from a CustomResourceDefinition: no strategic merge patch, no unconditional update.
    custom: bool = False
    #: Field selector paths besides metadata.name and metadata.namespace.
    selectable: tuple[str, ...] = ()
    #: True if metadata.generation counts the changes of the desired state.
    generation: bool = False
    #: True if changes of annotations count too, as for a Deployment.
    annotated_generation: bool = False
    #: The metadata of a built-in kind that an update of its status does not change.
    status_keeps: tuple[str, ...] = ()
    #: True if an update without a resourceVersion is accepted.
    unconditional_update: bool = True
    #: True if a delete without a propagation policy orphans the dependents, which is refused.
    orphan_by_default: bool = False
    #: True if a delete waits for a grace period, as for a running Pod.
    graceful: bool = False

    @property
    def storage(self) -> str:
        """The collection in the store, the same for all versions of a kind."""
        return self.resource.name


class ResourceTable:
    """Rows by group, version and plural, for discovery, routing and storage."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        #: In the order of discovery.
        self._rows: dict[tuple[str, str, str], Row] = {}
        self._kinds: dict[tuple[str, str, str], Row] = {}
        #: Counts changes, so that derived documents can be cached.
        self.revision = 0
        for row in rows:
            self.add(row)

    @classmethod
    def builtin(cls) -> ResourceTable:
        """Return a table with the built-in kinds."""
        from hack.apiserver.builtin import ROWS  # noqa: PLC0415  # the rows are made of this module's classes

        return cls(ROWS)

    def add(self, row: Row) -> None:
        """Add a row, or replace the one of the same group, version and plural."""
        resource = row.resource
        self._rows[resource.group, resource.version, resource.plural] = row
        self._kinds[resource.group, resource.version, resource.kind] = row
        self.revision += 1

    def replace(self, group: str, plural: str, rows: Iterable[Row]) -> None:
        """Replace all versions of a kind."""
        self.remove(group, plural)
        for row in rows:
            self.add(row)

    def remove(self, group: str, plural: str) -> None:
        """Remove all versions of a kind."""
        for key in [key for key in self._rows if key[0] == group and key[2] == plural]:
            resource = self._rows.pop(key).resource
            self._kinds.pop((group, resource.version, resource.kind), None)
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Row | None:
        """Return the row of one version."""
        return self._rows.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> Row | None:
        """Return the row of one version, by kind."""
        return self._kinds.get((group, version, kind))

    def stored(self, storage: str) -> Row | None:
        """Return the row of a collection."""
        rows = [row for row in self._rows.values() if row.resource.name == storage]
        return rows[0] if rows else None

    def versions(self, group: str) -> list[str]:
        """Return the versions of a group; a plain sort puts v1 before v1beta1."""
        return sorted({key[1] for key in self._rows if key[0] == group})

    def groups(self) -> list[str]:
        """Return the groups in the order of their first rows; the core group is the empty string."""
        return list(dict.fromkeys(key[0] for key in self._rows))

    def rows(self, group: str, version: str) -> list[Row]:
        """Return the rows of one version of a group."""
        return [row for key, row in self._rows.items() if key[:2] == (group, version)]

    def __iter__(self) -> Iterator[Row]:
        return iter(list(self._rows.values()))

    def __len__(self) -> int:
        return len(self._rows)
