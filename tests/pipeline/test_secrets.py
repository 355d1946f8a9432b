"""Secrets in the objects that the manager reads, against everything that it writes."""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import generate_latest

from hack.scenario import load
from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import AlreadyExists, Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SETTINGS,
    VERSIONS,
    Resource,
)
from upgrade_manager.kube.transport import Response
from upgrade_manager.release.repository_client import RepositoryClient
from upgrade_manager.runtime.logging import configure_logging

CANARY = "canary-4f1c"
ENCODED = base64.b64encode(CANARY.encode()).decode()
URL = f"https://robot:{CANARY}@registry.example.com/v2"
REGISTRIES = {"Configs": {"r": {"Auth": {"Username": "robot", "Password": CANARY}}}}
KUBECONFIG = f"users: [{{name: a, user: {{token: {CANARY}}}}}]"
#: Annotations in which components keep credentials.
ANNOTATIONS = {
    "rke2.io/node-args": f'["server", "--token", "{CANARY}"]',
    "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": {"password": CANARY}}),
    "objectset.rio.cattle.io/applied": ENCODED,
}
#: Settings of Harvester whose values have credentials.
VALUES = {
    "containerd-registry": json.dumps(REGISTRIES),
    "http-proxy": json.dumps({"httpProxy": URL}),
    "backup-target": json.dumps({"type": "s3", "secretAccessKey": CANARY}),
    "cluster-registration-url": f"{URL}/import/{CANARY}.yaml",
}


class SlowToServe:
    """A repository that refuses its first connections; errors name the URL, as those of aiohttp do."""

    def __init__(self, inner: RepositoryClient, *, refusals: int) -> None:
        self._inner = inner
        self._left = refusals

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # the protocol's
        if self._left:
            self._left -= 1
            raise Transient(f"cannot connect to {url}")
        return await self._inner.fetch(url.replace(f"robot:{CANARY}@", ""), limit=limit, timeout=timeout)


async def plant(client: Client) -> None:
    """Put the canary wherever the manager may look."""
    annotated = MergePatch({"metadata": {"annotations": ANNOTATIONS}})
    for resource in (NODES, DEPLOYMENTS, SETTINGS, VERSIONS, PROVISIONING_CLUSTERS, SERVICE_ACCOUNTS, NAMESPACES):
        for obj in (await client.list(resource)).items:
            await client.patch(resource, objects.name(obj), annotated, namespace=objects.namespace(obj))
    secret = MergePatch({"metadata": {"annotations": ANNOTATIONS}, "data": {"agent-token": ENCODED}})
    for obj in (await client.list(SECRETS)).items:
        await client.patch(SECRETS, objects.name(obj), secret, namespace=objects.namespace(obj))
    for namespace in ("fleet-local", "harvester-system", "cattle-system", "longhorn-system"):
        data = {"kubeconfig": base64.b64encode(KUBECONFIG.encode()).decode(), "token": ENCODED}
        await create(client, SECRETS, {"metadata": {"name": "credentials", "namespace": namespace}, "data": data})
    for name, value in VALUES.items():
        await create(client, SETTINGS, {"metadata": {"name": name}, "value": value})


async def create(client: Client, resource: Resource, obj: Object) -> None:
    try:
        await client.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj})
    except AlreadyExists:
        await client.patch(resource, objects.name(obj), MergePatch(obj), namespace=objects.namespace(obj))


def revealed(text: str) -> list[str]:
    """Return the lines that have the canary."""
    return [line for line in text.splitlines() if CANARY in line or ENCODED in line]


@pytest.mark.rule("pipeline: no secret is in a log line, a metric, an event or a status, whatever object has it")
@pytest.mark.parametrize("release", ["v1.8.0", "unreadable"])
@pytest.mark.full
async def test_no_secret_is_logged_exported_or_reported(release: str) -> None:
    log = io.StringIO()
    configure_logging(level="debug", log_format="json", stream=log, now=lambda: datetime.now(UTC))
    faults: dict[str, Any] = {} if release != "unreadable" else {"repository": {"release_text": "no: release"}}
    async with Simulation(load("one-node").changed(**faults)) as simulation:
        await plant(simulation.client())
        run = await UpgradeRun.set_up(simulation)
        run.options = RunOptions(repo_url=f"http://robot:{CANARY}@{{service}}.harvester-system")
        run.repository = SlowToServe(simulation.repository, refusals=3)
        async with run.life() as life:
            await run.create_plan(annotations=ANNOTATIONS)
            if release == "unreadable":
                await run.until_plan(lambda plan: objects.is_condition_true(plan, "Degraded"))
            else:
                await run.succeed()
            metrics = generate_latest(life.metrics.registry).decode()
        plan, events = await run.plan(), await run.events()
    assert '"phase changed"' in log.getvalue()
    assert revealed(log.getvalue()) == []
    assert revealed(metrics) == []
    assert revealed(json.dumps([objects.status(plan), *(event["message"] for event in events)], indent=0)) == []
