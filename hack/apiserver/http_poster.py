"""Admission webhooks over real HTTPS."""

from __future__ import annotations

import io
import ssl
from typing import TYPE_CHECKING

import aiohttp

from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.posting import Target


class HttpPoster:
    """A `Poster` over HTTPS; `services` maps "namespace/name" to a base URL, as there is no cluster network."""

    def __init__(self, *, services: Mapping[str, str]) -> None:
        self._services = services

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109
        """Send an AdmissionReview. Raises Transient without a response in time."""
        url = target.url or self._service_url(target)
        # The name that kube-apiserver verifies.
        host = None if target.url else f"{target.service_name}.{target.service_namespace}.svc"
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout)) as session,
                session.post(
                    url,
                    data=io.BytesIO(body),
                    ssl=_trust(target),
                    server_hostname=host,
                    headers={"content-type": "application/json"},
                ) as response,
            ):
                headers = {"content-type": response.headers.get("content-type", "")}
                return Response(status=response.status, headers=headers, body=await response.read())
        except (TimeoutError, aiohttp.ClientError, ssl.SSLError) as error:
            raise Transient(_reason(error)) from error

    def _service_url(self, target: Target) -> str:
        name = f"{target.service_namespace}/{target.service_name}"
        base = self._services.get(name)
        if base is None:
            raise Transient(f'service "{target.service_name}" not found')
        return base.rstrip("/") + target.service_path


def _trust(target: Target) -> ssl.SSLContext:
    authority = target.ca_bundle.decode() or None
    try:
        return ssl.create_default_context(cadata=authority)
    except ssl.SSLError as error:
        raise Transient(f"the caBundle is not a certificate: {error}") from error


def _reason(error: Exception) -> str:
    """Return the reason for a failed request, as Go's HTTP client words it."""
    match error:
        case TimeoutError():
            return "context deadline exceeded"
        case aiohttp.ClientConnectorCertificateError():
            return f"tls: failed to verify certificate: x509: certificate signed by unknown authority ({error})"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {error.host}:{error.port}: connect: connection refused"
        case _:
            return str(error)
