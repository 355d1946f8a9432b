"""The user and the attributes of a request, passed from authentication to authorization."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An authenticated user, as a TokenReview shows it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


#: The user of requests without an authorization header (in-process clients); allowed everything.
ADMIN = User(name="system:admin", groups=("system:masters", "system:authenticated"))
#: The user of requests through a gateway without credentials: the header is empty.
ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))


#: The attributes of a resource request, by their names in `Attributes` and in the spec of a review.
RESOURCE_ATTRIBUTES = ("verb", "group", "resource", "subresource", "namespace", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """The attributes of a request that RBAC evaluates."""

    #: get, list, watch, create, update, patch, delete, deletecollection; or the HTTP method in lower case.
    verb: str
    #: Set for non-resource requests.
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def is_resource(self) -> bool:
        """Return whether this is a resource request."""
        return bool(self.resource)
