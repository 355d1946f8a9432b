"""The admission webhook of an API server that kubectl talks to: by URL, with a self-made certificate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from tests.support.cluster.kubectl import PLANS, Cluster, manifest
from tests.support.programs.polling import eventually
from tests.support.webhook.webhook import admission
from tests.support.webhook.webhook_certificates import NAMESPACE, issue, secret
from upgrade_manager.api.keys import ANNOTATION_CREATED_BY, ANNOTATION_SKIP_WEBHOOK
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import SECRETS, Resource
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.peers import Peers
from webhook import builtin, mutation
from webhook.certificates.pair import Service
from webhook.certificates.rotation import CONFIGURATION, CertificateRotation
from webhook.check import Check, Finding, Subject
from webhook.checks import image, nodes, pause_list
from webhook.cluster import ClusterReader, Listing, LiveReader
from webhook.metrics import WebhookMetrics
from webhook.server import PATH, webhook_server

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = CONFIGURATIONS.replace("validating", "mutating")
MANIFEST = Path(__file__).parents[3] / "deploy/webhook/webhook.yaml"
_SECONDS = 30.0


async def _find(subject: Subject) -> list[Finding]:
    absent = Resource(group="absent.example.io", version="v1", plural="things", kind="Thing")
    await subject.cluster.list(Listing(resource=absent, slim=dict))
    return []


#: Reads a kind that no test server serves.
ABSENT = Check(name="things", field="spec", find=_find)
#: Checks that need no kinds of other projects.
CHECKS = (image.CHECK, pause_list.CHECK, nodes.CHECK, ABSENT)


@dataclass
class _Clock:
    age: timedelta

    def now(self) -> datetime:
        return datetime.now(UTC) - self.age


class HeldReader:
    """Reads while `released` is set."""

    def __init__(self, inner: ClusterReader) -> None:
        self._inner = inner
        self.released = asyncio.Event()
        self.released.set()
        #: Set when a read waits.
        self.waiting = asyncio.Event()

    async def list(self, listing: Listing) -> Sequence[Object]:
        self.waiting.set()
        await self.released.wait()
        return await self._inner.list(listing)


@dataclass
class Webhook:
    """The running webhook."""

    cluster: Cluster
    task: asyncio.Task[None]
    reader: HeldReader
    rotation: CertificateRotation

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})

    async def node(self, name: str, *, ready: str = "True", unschedulable: bool = False) -> None:
        node = {"metadata": {"name": name}, "spec": {"unschedulable": unschedulable}}
        await self.cluster.wire.post("/api/v1/nodes", node)
        condition = {"type": "Ready", "status": ready, "reason": "Test", "message": "kubelet stopped"}
        status = {"status": {"conditions": [condition]}}
        answer = await self.cluster.wire.patch(f"/api/v1/nodes/{name}/status", status, kind="strategic")
        assert answer.status == 200, answer.body

    async def plan(self, name: str, *, status: dict[str, Any], pause: Sequence[str] = (), **metadata: Any) -> None:
        """Create a plan with a status, past the checks."""
        plan = manifest(name, version="v1.8.0", nodeUpgradeOption={"pauseNodes": [*pause]})
        plan["metadata"] |= metadata
        plan["metadata"].setdefault("annotations", {})["management.harvesterhci.io/skip-webhook"] = "true"
        answer = await self.cluster.wire.post(PLANS, plan)
        assert answer.status == 201, answer.body
        answer = await self.cluster.wire.patch(f"{PLANS}/{name}/status", {"status": status})
        assert answer.status == 200, answer.body


#: The files of the other configurations.
_OTHERS = ("mutating", "upgrades")


@asynccontextmanager
async def webhook(cluster: Cluster, *, age: timedelta = timedelta()) -> AsyncIterator[Webhook]:
    """Serve the webhook, register it as in deploy, and wait until the API server calls it.

    `age` is that of its certificate.
    """
    await cluster.wire.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    await cluster.wire.post(SECRETS.path(namespace=NAMESPACE), secret())
    client = Client(cluster.wire.transport, user_agent="webhook", random=Random(1))
    # Verified by the API server as the host of the URL.
    service = Service(name="localhost", namespace=NAMESPACE)
    clock = _Clock(age)
    rotation = CertificateRotation(client, service=service, issue=issue, now=clock.now, random=Random(1))
    await rotation.rotate()
    reader = HeldReader(LiveReader(client))
    server = webhook_server(
        admission(reader=reader, checks=CHECKS),
        metrics=WebhookMetrics(Metrics(CollectorRegistry()), checks=[check.name for check in CHECKS]),
        address=("localhost", 0),
        tls=rotation.context,
        peers=Peers(),
    )
    task = asyncio.create_task(server.run())
    try:
        await server.bound()
        await _register(cluster, port=server.port)
        await rotation.rotate()
        clock.age = timedelta()
        await eventually(lambda: _is_effective(cluster), seconds=_SECONDS)
        yield Webhook(cluster, task, reader, rotation)
    finally:
        for path, name in ((CONFIGURATIONS, ""), (CONFIGURATIONS, "-upgrades"), (MUTATING, "")):
            await cluster.wire.delete(f"{path}/{CONFIGURATION}{name}")
        task.cancel()
        await asyncio.wait({task})


async def _register(cluster: Cluster, *, port: int) -> None:
    _, validating = yaml.safe_load_all(MANIFEST.read_text())
    mutating, upgrades = (yaml.safe_load(MANIFEST.with_name(f"{name}.yaml").read_text()) for name in _OTHERS)
    registered = (
        (CONFIGURATIONS, validating, PATH),
        (CONFIGURATIONS, upgrades, builtin.PATH),
        (MUTATING, mutating, mutation.PATH),
    )
    for path, configuration, served in registered:
        configuration["webhooks"][0]["clientConfig"] = {"url": f"https://localhost:{port}{served}"}
        answer = await cluster.wire.post(path, configuration)
        assert answer.status == 201, answer.body


async def _is_effective(cluster: Cluster) -> bool:
    """Return whether the webhooks record a creator, and deny a plan on a cluster without nodes."""
    skipped = manifest("canary")
    skipped["metadata"]["annotations"] = {ANNOTATION_SKIP_WEBHOOK: "true"}
    recorded = await cluster.wire.post(PLANS, skipped, dryRun="All")
    is_recorded = ANNOTATION_CREATED_BY in recorded.body["metadata"]["annotations"]
    return is_recorded and (await cluster.wire.post(PLANS, manifest("canary"), dryRun="All")).status == 422
