"""The CAs by which the API server verifies the webhook.

rotation.py calls it to write the CAs into the webhook configurations.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.objects import resource_version
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from upgrade_manager.runtime.cert_watcher import CertificateError
from webhook.certificates.pair import CA_COMMON_NAME, subjects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: The most CAs in a caBundle, which are the CAs of served certificates and of some earlier certificates.
_MAX_AUTHORITIES = 4
_END = "-----END CERTIFICATE-----"
#: The configurations by kind, with what follows the name; the last one reviews Harvester's own upgrades.
CONFIGURATIONS = (
    (VALIDATING_WEBHOOK_CONFIGURATIONS, ""),
    (MUTATING_WEBHOOK_CONFIGURATIONS, ""),
    (VALIDATING_WEBHOOK_CONFIGURATIONS, "-upgrades"),
)
log = structlog.get_logger(__name__)


class CaBundle:
    """The caBundle of all webhooks in the configurations, whose names begin with the same name."""

    def __init__(self, client: Client, *, name: str) -> None:
        self._client = client
        self._name = name

    async def publish(self, authorities: Sequence[str]) -> bool:
        """Make the API server trust these CAs; return True if it did not trust them all. Raises KubeError.

        Earlier self-made CAs are kept, because other replicas may still serve their certificates. An earlier CA is
        harmless, because its key is discarded. A missing configuration is skipped.
        """
        return any([await self._publish(kind, f"{self._name}{end}", authorities) for kind, end in CONFIGURATIONS])

    async def _publish(self, kind: Resource, name: str, authorities: Sequence[str]) -> bool:
        try:
            configuration = await self._client.get(kind, name)
        except NotFound:
            return False
        operations = list(_operations(configuration, authorities))
        if not operations:
            return False
        pin = {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version(configuration)}
        await self._client.patch(kind, name, JsonPatch([pin, *operations]))
        log.info("caBundle written", configuration=name, kind=kind.kind)
        return True


def _operations(configuration: Object, authorities: Sequence[str]) -> Iterator[Object]:
    for index, webhook in enumerate(objects.items(configuration, "webhooks")):
        current = objects.text(webhook, "clientConfig", "caBundle")
        bundle = _encoded(_merged(authorities, current))
        if bundle != current:
            yield {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}


def _merged(authorities: Sequence[str], current: str) -> list[str]:
    """Return the CAs, then the self-made CAs of the current bundle, each once."""
    earlier = [one for one in _split(_decoded(current)) if _is_self_made(one)]
    return list(dict.fromkeys([*(one.strip() for one in authorities), *earlier]))[:_MAX_AUTHORITIES]


def _split(pem: str) -> list[str]:
    return [f"{one}{_END}".strip() for one in pem.split(_END)[:-1]]


def _is_self_made(authority: str) -> bool:
    try:
        (decoded,) = subjects(authority)
    except (CertificateError, ValueError):
        return False
    return _common_names(decoded) == [CA_COMMON_NAME]


def _common_names(certificate: Any) -> list[str]:
    return [value for part in certificate["subject"] for name, value in part if name == "commonName"]


def _encoded(authorities: Sequence[str]) -> str:
    return base64.b64encode("\n".join([*authorities, ""]).encode()).decode()


def _decoded(bundle: str) -> str:
    try:
        return base64.b64decode(bundle).decode("ascii")
    except (binascii.Error, UnicodeError):
        return ""
