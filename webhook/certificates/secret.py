"""The Secret on which the replicas agree.

rotation.py reads and writes the Secret; pair.py describes its content.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, NotFound
from upgrade_manager.kube.resources import SECRETS
from upgrade_manager.runtime.cert_watcher import CERTIFICATE, KEY, CertificateError
from webhook.certificates.pair import Pair, Service

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: The key of the CA, in Secrets of cert-manager too.
AUTHORITY = "ca.crt"


class CertificateSecret:
    """Reads and writes one pair; a write fails if another replica has written since the last read.

    The Secret is installed without data, because the permission to create Secrets cannot be restricted to a name.
    """

    def __init__(self, client: Client, *, name: str, service: Service) -> None:
        self._client = client
        self._name = name
        self._service = service
        self._log = structlog.get_logger(__name__, secret=f"{service.namespace}/{name}")
        #: The Secret as it was last read.
        self._read: Object = {}

    async def read(self) -> Pair | None:
        """Return the pair; None for other content. Raises KubeError, and CertificateError for a missing Secret."""
        namespace = self._service.namespace
        try:
            self._read = await self._client.get(SECRETS, self._name, namespace=namespace)
        except NotFound as error:
            create = f"kubectl create secret generic {self._name} -n {namespace}"
            message = f"Secret {namespace}/{self._name} does not exist. Create it: {create}"
            raise CertificateError(message) from error
        if not objects.mapping(self._read, "data"):
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
            # The Secret's type and other keys are kept: the type is immutable, and some types require other keys.
            kept = objects.mapping(self._read, "data")
            await self._client.update(SECRETS, {**self._read, "data": {**kept, **data}})
        except Conflict:
            return False
        self._log.info("certificate stored", expires=pair.not_after.isoformat())
        return True

    def _pair(self, secret: Object) -> Pair:
        data = objects.strings(secret, "data")
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
