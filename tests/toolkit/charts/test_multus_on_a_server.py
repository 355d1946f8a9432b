"""The chart rke2-multus, whose upgrade is interrupted: with the failure policy of the row, and without it.

The API server, helm and RKE2's controller of charts are real; hack/host/chart_job.py plays the container of the
controller's Job, with the variables and the chart that the controller has given to it.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from hack.actors.helm_storage import HelmStorage
from hack.control_plane.assets import AssetsError, find_tool
from hack.control_plane.backend import direct
from hack.control_plane.control_plane import ADMIN, ControlPlane
from hack.host.chart_job import ChartJob
from tests.support.programs.helm import Helm
from tests.support.programs.polling import eventually
from tests.support.server.cluster_reset import reset
from tests.support.toolkit.real_charts import SECONDS, Hook, archive, config_map, connected, killed_at, pre_upgrade
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, JOBS, Resource
from upgrade_manager.toolkit.charts.cluster_resources import HELM_CHART_CONFIGS
from upgrade_manager.toolkit.charts.multus import abort_not_set, set_abort

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

MULTUS, KUBE_SYSTEM = "rke2-multus", "kube-system"
HELM_CHARTS = Resource(group="helm.cattle.io", version="v1", plural="helmcharts", kind="HelmChart")
#: VM networks.
NETWORKS = Resource(
    group="k8s.cni.cncf.io",
    version="v1",
    plural="network-attachment-definitions",
    kind="NetworkAttachmentDefinition",
)
#: As rke2-multus has it in its templates, without the annotation `keep` (rancher/rke2-charts, charts/rke2-multus,
#: rke2-multus/v4.2.314/templates/customResourceDefinition.yaml; harvester/harvester#10366).
DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NETWORKS.name},
    "spec": {
        "group": NETWORKS.group,
        "scope": "Namespaced",
        "names": {
            "kind": NETWORKS.kind,
            "listKind": f"{NETWORKS.kind}List",
            "plural": NETWORKS.plural,
            "singular": "network-attachment-definition",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"config": {"type": "string"}}}},
                    }
                },
            }
        ],
    },
}
HOOK = "rke2-multus-check"
BEFORE = archive(MULTUS, "4.2.311", DEFINITION, config_map(MULTUS, chart="4.2.311"))
AFTER = archive(MULTUS, "4.2.314", DEFINITION, config_map(MULTUS, chart="4.2.314"), pre_upgrade(HOOK))


@pytest.fixture
def controller() -> Path:
    """Return the program."""
    try:
        return find_tool("helm-controller", os.environ)
    except AssetsError as error:
        pytest.skip(str(error))


class Charts:
    """RKE2's part: the object of the chart, and the container of the Job that the controller makes of it."""

    def __init__(self, client: Client, helm: Helm) -> None:
        self.client = client
        self.helm = helm
        self.hook = Hook(client=client, name=HOOK, namespace=KUBE_SYSTEM)

    async def place(self, chart: bytes) -> None:
        """Create or change the object, as RKE2 does when it has started with other manifests."""
        spec = {"chartContent": base64.b64encode(chart).decode(), "timeout": "1s"}
        metadata = {"name": MULTUS, "namespace": KUBE_SYSTEM}
        if await self.client.find(HELM_CHARTS, MULTUS, namespace=KUBE_SYSTEM) is None:
            body: Object = {"metadata": metadata, "spec": spec}
            await self.client.create(HELM_CHARTS, HELM_CHARTS.with_type_meta(body))
        else:
            await self.client.patch(HELM_CHARTS, MULTUS, MergePatch({"spec": spec}), namespace=KUBE_SYSTEM)

    async def environ(self, *, chart: bytes, policy: str) -> dict[str, str]:
        """Return the variables of the Job's container, once the controller has made it for this chart and policy."""
        encoded = base64.b64encode(chart).decode()

        async def found() -> dict[str, str]:
            content = await self.client.find(CONFIG_MAPS, f"chart-content-{MULTUS}", namespace=KUBE_SYSTEM)
            job = await self.client.find(JOBS, f"helm-install-{MULTUS}", namespace=KUBE_SYSTEM)
            if content is None or encoded not in content["data"].values() or job is None or objects.is_deleting(job):
                return {}
            (container,) = job["spec"]["template"]["spec"]["containers"]
            environ = {one["name"]: one.get("value", "") for one in container["env"]}
            return environ if environ["FAILURE_POLICY"] == policy else {}

        result: dict[str, str] = await eventually(found, seconds=SECONDS)
        return result

    async def job(self, *, chart: bytes, policy: str) -> int:
        """Run the container to its end, and return its exit status."""

        async def helm(*arguments: str) -> int:
            return await (await self.helm.start(*arguments, namespace=KUBE_SYSTEM)).wait()

        path = self.helm.folder / "chart.tgz"
        path.write_bytes(chart)
        environ = await self.environ(chart=chart, policy=policy)
        return await ChartJob(environ, chart=path, helm=helm, storage=HelmStorage(self.client)).run()

    async def is_killed_during_the_upgrade(self) -> None:
        """Kill helm after it has stored the new revision, and before it changes an object."""
        await self.environ(chart=AFTER, policy="abort")
        path = self.helm.folder / "chart.tgz"
        path.write_bytes(AFTER)
        await killed_at(self.hook, self.helm, "upgrade", MULTUS, str(path))

    async def status(self) -> str:
        """Return the status of the latest revision."""
        return str((await HelmStorage(self.client).revisions(MULTUS, KUBE_SYSTEM))[-1]["info"]["status"])

    async def network(self) -> Object | None:
        """Return the VM network, None with its kind or alone removed."""
        return await self.client.find(NETWORKS, "vlan-1", namespace="default")


@asynccontextmanager
async def running(program: Path, client: Client, helm: Helm) -> AsyncIterator[None]:
    """Run the controller until the block ends, and remove the kinds that it has defined."""
    log = (helm.folder / "helm-controller.log").open("wb")
    process = await asyncio.create_subprocess_exec(program, env=helm.environment, stdout=log, stderr=log)
    try:
        await eventually(partial(_is_served, client, HELM_CHARTS), seconds=SECONDS)
        yield
    finally:
        process.kill()
        await process.wait()
        log.close()
        for kind in (HELM_CHARTS, HELM_CHART_CONFIGS, NETWORKS):
            await _undefine(client, kind)


async def _is_served(client: Client, kind: Resource) -> bool:
    try:
        await client.list(kind)
    except NotFound:
        return False
    return True


async def _undefine(client: Client, kind: Resource) -> None:
    try:
        for one in (await client.list(kind)).items:
            patch = MergePatch({"metadata": {"finalizers": None}})
            await client.patch(kind, objects.name(one), patch, namespace=objects.namespace(one))
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, kind.name)
    except NotFound:
        return

    async def is_deleted() -> bool:
        return await client.find(CUSTOM_RESOURCE_DEFINITIONS, kind.name) is None

    await eventually(is_deleted, seconds=SECONDS)


@pytest.fixture
async def charts(tmp_path: Path, controlled_plane: ControlPlane, controller: Path) -> AsyncIterator[Charts]:
    """Provide an empty cluster with the controller."""
    helm = connected(tmp_path, controlled_plane)
    async with direct(controlled_plane, token=ADMIN.token) as transport:
        client = Client(transport, user_agent="toolkit", random=Random(1), field_validation="Strict")
        await reset(controlled_plane, transport, client)
        async with running(controller, client, helm):
            yield Charts(client, helm)


@pytest.mark.rule("workloads: an interrupted upgrade of the chart rke2-multus deletes no VM network")
async def test_abort_keeps_networks_that_reinstall_deletes(charts: Charts) -> None:
    client, context = charts.client, cast("ToolkitContext", SimpleNamespace(client=charts.client))
    await charts.place(BEFORE)
    # The policy that RKE2 has without the row.
    assert await charts.job(chart=BEFORE, policy="reinstall") == 0
    body: Object = {"metadata": {"name": "vlan-1", "namespace": "default"}, "spec": {"config": "{}"}}
    await client.create(NETWORKS, NETWORKS.with_type_meta(body))
    network = await charts.network()

    await set_abort(context)
    assert await abort_not_set(context) == ""
    await charts.place(AFTER)
    await charts.is_killed_during_the_upgrade()
    assert await charts.status() == "pending-upgrade"
    # The kubelet restarts the container: the upgrade is repeated, and fails.
    assert await charts.job(chart=AFTER, policy="abort") != 0
    assert await charts.status() == "failed"
    assert await charts.job(chart=AFTER, policy="abort") == 1
    assert await charts.network() == network

    await client.delete(HELM_CHART_CONFIGS, MULTUS, namespace=KUBE_SYSTEM)
    assert await charts.job(chart=AFTER, policy="reinstall") == 0
    assert await charts.status() == "deployed"
    assert await charts.network() is None
