"""Who asks, and what is asked: what authentication hands to authorization."""

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


#: May do everything; the default of requests that carry no authorization header at all, as in-process ones do.
ADMIN = User(name="system:admin", groups=("system:masters", "system:authenticated"))
#: Whoever comes through a gateway without credentials: the header is there, and empty.
ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What a request wants to do, in the terms of RBAC."""

    #: get, list, watch, create, update, patch, delete, deletecollection; or the HTTP method in lower case.
    verb: str
    #: For requests about no resource.
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def is_resource(self) -> bool:
        """Whether `resource` counts, or `path`."""
        return bool(self.resource)
