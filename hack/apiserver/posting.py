"""How admission webhooks are reached; injected, because in process nothing is posted over a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The clientConfig of a webhook: a URL, or a Service for which the poster knows one."""

    url: str = ""
    service_namespace: str = ""
    service_name: str = ""
    service_path: str = "/"
    service_port: int = 443
    #: PEM; empty for the system's own trust.
    ca_bundle: bytes = b""

    @property
    def shown(self) -> str:
        """The URL, also of a Service."""
        if self.url:
            return self.url
        return f"https://{self.service_name}.{self.service_namespace}.svc:{self.service_port}{self.service_path}"


class Poster(Protocol):
    """Sends one AdmissionReview and brings the answer back."""

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109
        """The answer of any status. Raises Transient when there is none in time."""
        ...


class NoPoster:
    """Reaches no webhook."""

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109, ARG002
        """Fail."""
        raise Transient(f"{target.shown}: nothing is reached from inside a simulation")
