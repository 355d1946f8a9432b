"""The Secret on which the replicas agree."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.errors import AlreadyExists, Conflict, NotFound
from upgrade_manager.kube.resources import SECRETS
from upgrade_manager.runtime.cert_watcher import CERTIFICATE, KEY, CertificateError
from webhook import fields
from webhook.certificates.pair import Pair, Service

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: The key of the CA, in Secrets of cert-manager too.
AUTHORITY = "ca.crt"


class CertificateSecret:
    """Reads and writes one pair; a write fails if another replica has written since the last read."""

    def __init__(self, client: Client, *, name: str, service: Service) -> None:
        self._client = client
        self._name = name
        self._service = service
        self._log = structlog.get_logger(__name__, secret=f"{service.namespace}/{name}")
        #: The Secret as last read; None if it does not exist.
        self._read: Object | None = None

    async def read(self) -> Pair | None:
        """Return the pair, None if there is no Secret or its content is not a pair. Raises KubeError."""
        try:
            self._read = await self._client.get(SECRETS, self._name, namespace=self._service.namespace)
        except NotFound:
            self._read = None
            return None
        try:
            return self._pair(self._read)
        except CertificateError as error:
            self._log.warning("Secret has no valid certificate", error=str(error))
            return None

    async def write(self, pair: Pair) -> bool:
        """Store the pair; return False if another replica was faster. Raises KubeError."""
        data = {
            key: base64.b64encode(text.encode()).decode()
            for key, text in ((CERTIFICATE, pair.certificate), (KEY, pair.key), (AUTHORITY, pair.authority))
        }
        try:
            if self._read is None:
                await self._client.create(SECRETS, self._new(data))
            else:
                # The type of a Secret is immutable, and other types require other keys: both are kept.
                kept = fields.mapping(self._read, "data")
                await self._client.update(SECRETS, {**self._read, "data": {**kept, **data}})
        except (AlreadyExists, Conflict):
            return False
        self._log.info("certificate stored", expires=pair.not_after.isoformat())
        return True

    def _new(self, data: dict[str, str]) -> Object:
        return {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {
                "name": self._name,
                "namespace": self._service.namespace,
                "labels": {"app.kubernetes.io/name": "harvester-upgrade-manager"},
            },
            "type": "kubernetes.io/tls",
            "data": data,
        }

    def _pair(self, secret: Object) -> Pair:
        data = fields.strings(secret, "data")
        return Pair.load(
            key=_decoded(data.get(KEY, "")),
            certificate=_decoded(data.get(CERTIFICATE, "")),
            authority=_decoded(data.get(AUTHORITY, "")),
            service=self._service,
        )


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode("ascii")
    except (binascii.Error, UnicodeError) as error:
        raise CertificateError("not PEM") from error
