"""The interface through which admission webhooks are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The clientConfig of a webhook: a URL, or a Service."""

    url: str = ""
    service_namespace: str = ""
    service_name: str = ""
    service_path: str = "/"
    service_port: int = 443
    #: PEM; empty to use the system's certificates.
    ca_bundle: bytes = b""

    @property
    def shown(self) -> str:
        """Return the URL, also for a Service."""
        if self.url:
            return self.url
        return f"https://{self.service_name}.{self.service_namespace}.svc:{self.service_port}{self.service_path}"


class Poster(Protocol):
    """Sends an AdmissionReview and returns the response."""

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109
        """Return the response, whatever its status. Raises Transient without one in time."""
        ...


class NoPoster:
    """A poster without network; every call fails."""

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109, ARG002
        """Raise Transient."""
        raise Transient("dial tcp: connect: connection refused")
