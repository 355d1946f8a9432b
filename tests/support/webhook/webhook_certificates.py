"""Replicas of the webhook's certificate rotation in virtual time, and an API server that verifies them."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from hack.simulation import Simulation
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS, Resource
from webhook.certificates import issuer
from webhook.certificates.ca_bundle import CONFIGURATIONS
from webhook.certificates.pair import Pair, Service
from webhook.certificates.rotation import CONFIGURATION, SECRET, SERVICE, CertificateRotation

NAMESPACE = "harvester-system"
THE_SERVICE = Service(name=SERVICE, namespace=NAMESPACE)
#: Time after which a new certificate is renewed: two thirds of a year.
RENEWAL = timedelta(days=244)


def configuration(*bundles: str, kind: Resource = VALIDATING_WEBHOOK_CONFIGURATIONS, end: str = "") -> Object:
    """Return a configuration with a webhook for each caBundle."""
    webhooks = [
        {
            "name": f"check-{index}.example.io",
            "clientConfig": {"service": {"name": SERVICE, "namespace": NAMESPACE}}
            | ({"caBundle": base64.b64encode(bundle.encode()).decode()} if bundle else {}),
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [],
        }
        for index, bundle in enumerate(bundles)
    ]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": f"{CONFIGURATION}{end}"},
        "webhooks": webhooks,
    }


async def issue(service: Service, now: datetime) -> Pair:
    """Make a pair in this process."""
    return Pair.load(**issuer.make(service, now=now), service=service)


def new_pair(now: datetime) -> Pair:
    return Pair.load(**issuer.make(THE_SERVICE, now=now), service=THE_SERVICE)


def secret(data: Any = None, **fields: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "data": data,
        **fields,
    }


@dataclass
class Replicas:
    """Several replicas on one simulated cluster, whose calendar can be moved."""

    simulation: Simulation
    #: Offset to the cluster's time.
    shift: timedelta = timedelta()
    issued: list[Pair] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the time of the replicas and the API server."""
        return self.simulation.now() + self.shift

    def replica(
        self, seed: int = 0, *, clock_error: timedelta = timedelta(), client: Client | None = None
    ) -> CertificateRotation:
        random = Random(seed)

        async def issue_and_record(service: Service, now: datetime) -> Pair:
            await asyncio.sleep(0.5)
            self.issued.append(await issue(service, now))
            return self.issued[-1]

        return CertificateRotation(
            client or Client(self.simulation.transport(), user_agent="replica", random=random),
            service=THE_SERVICE,
            issue=issue_and_record,
            now=lambda: self.now() + clock_error,
            random=random,
        )

    async def install_secret(self, data: Any = None, **fields: Any) -> None:
        await self.simulation.client().create(SECRETS, secret(data, **fields))

    async def install(self, *bundles: str) -> None:
        """Create the Secret, and all configurations."""
        await self.install_secret()
        await self.install_configuration(*bundles)

    async def install_configuration(self, *bundles: str) -> None:
        for kind, end in CONFIGURATIONS:
            await self.simulation.client().create(kind, configuration(*(bundles or ("",)), kind=kind, end=end))

    async def bundles(self, kind: Resource = VALIDATING_WEBHOOK_CONFIGURATIONS, end: str = "") -> list[str]:
        """Return the CAs that the API server trusts, for each webhook; none without a configuration."""
        try:
            found = await self.simulation.client().get(kind, f"{CONFIGURATION}{end}")
        except NotFound:
            return []
        encoded = [webhook["clientConfig"].get("caBundle", "") for webhook in found["webhooks"]]
        return [base64.b64decode(text).decode("ascii", "replace") for text in encoded]

    async def stored(self) -> Pair:
        """Return the pair in the Secret."""
        found = await self.simulation.client().get(SECRETS, SECRET, namespace=NAMESPACE)
        data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
        return Pair.load(
            key=data["tls.key"], certificate=data["tls.crt"], authority=data["ca.crt"], service=THE_SERVICE
        )

    async def call(self, replica: CertificateRotation) -> str:
        """Call a replica as the API server does; return why that fails, or ""."""
        (bundle, *_) = await self.bundles()
        return verify(await replica.context(), bundle, now=self.now())


def verify(server: ssl.SSLContext, bundle: str, *, now: datetime) -> str:
    """Shake hands in memory as a client that trusts these CAs; return why that fails, or ""."""
    try:
        client_context = ssl.create_default_context(cadata=bundle.replace("\ufffd", "") or None)
    except ssl.SSLError as error:
        return str(error)
    # X509_V_FLAG_NO_CHECK_TIME: OpenSSL's own clock is not used.
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VerifyFlags(0x200000)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(incoming, outgoing, server_hostname=THE_SERVICE.host)
    sides = client, server.wrap_bio(outgoing, incoming, server_side=True)
    try:
        for _ in range(4):
            for side in sides:
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()
    except ssl.SSLError as error:
        return str(error)
    shown: Any = client.getpeercert() or {}
    begin, end = (ssl.cert_time_to_seconds(shown[key]) for key in ("notBefore", "notAfter"))
    return "" if begin <= now.timestamp() < end else "expired or not yet valid"
