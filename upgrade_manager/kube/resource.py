"""A kind of object and where the API server keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Group, version and plural of a kind; enough to build every URL path without discovery."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As objects carry it: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """Fully qualified, for messages and metrics: `jobs.batch`, `nodes`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of its subresource; no namespace means all."""
        parts = ["/apis/" + self.api_version if self.group else "/api/" + self.version]
        if namespace and self.namespaced:
            parts.append("namespaces/" + quote(namespace, safe=""))
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)
