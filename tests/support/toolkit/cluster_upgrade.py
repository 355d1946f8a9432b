"""A cluster with Rancher's and Harvester's services, and `cluster-upgrade` on it, killed wherever a test wants."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import yaml

from hack import scenario as scenarios
from hack.actors.helm_storage import HelmStorage
from hack.actors.repository import release_text
from hack.faults.middleware import NoHook
from hack.host.helm import SimulatedHelm
from hack.host.iso import ADDON_IMAGES, installer_archive
from tests.support.cluster.simulate import embedded
from tests.support.toolkit.toolkit import toolkit_world
from tests.support.toolkit.toolkit_interrupts import Killed
from upgrade_manager.api.keys import PREFIX
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import (
    ADDONS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    KUBEVIRTS,
    MANAGED_CHARTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    RANCHER_FEATURES,
    SECRETS,
    SETTINGS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from upgrade_manager.toolkit.charts.cluster_resources import (
    CLUSTER_REPOS,
    HELM_CHART_CONFIGS,
)
from upgrade_manager.toolkit.charts.helm import Helm
from upgrade_manager.toolkit.charts.managed_charts import without_effect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hack.apiserver.call import Call
    from hack.scenario import Scenario
    from tests.support.cluster.simulate import Simulate
    from tests.support.toolkit.toolkit import ToolkitWorld
    from upgrade_manager.kube.transport import Response

COMMAND = "cluster-upgrade"
NVIDIA_VALUES = """\
image:
  tag: v1.7-20251222
  repo: rancher/harvester-nvidia-driver-toolkit
driverLocation: https://files.example.com/driver.run
"""
_ADDONS = (
    {"name": "rancher-monitoring", "namespace": "cattle-monitoring-system", "enabled": True},
    {"name": "rancher-logging", "namespace": "cattle-logging-system", "enabled": False},
    {
        "name": "vm-import-controller",
        "namespace": "harvester-system",
        "chart": "harvester-vm-import-controller",
        "version": "1.7.1",
        "values": "image:\n  tag: v1.7.1\nfullnameOverride: harvester-vm-import-controller\n",
    },
    {
        "name": "pcidevices-controller",
        "namespace": "harvester-system",
        "enabled": False,
        "chart": "harvester-pcidevices-controller",
        "version": "1.7.1",
        "values": "# mirrored\nimage: {repository: mirror.example.com/rancher/harvester-pcidevices, tag: 'v1.7.1'}\n",
    },
    {
        "name": "nvidia-driver-toolkit",
        "namespace": "harvester-system",
        "enabled": False,
        "chart": "nvidia-driver-runtime",
        "version": "1.7.1",
        "values": NVIDIA_VALUES,
    },
    {"name": "descheduler", "enabled": False, "version": "0.33.0", "values": "replicas: 1\n"},
    {"name": "kubeovn-operator", "enabled": False, "version": "1.14.10", "values": "enableConfiguration: true\n"},
)


_RELEASES = (
    ("rancher", "cattle-system"),
    ("rancher-webhook", "cattle-system"),
    ("fleet", "cattle-fleet-system"),
    ("fleet-crd", "cattle-fleet-system"),
    ("rancher-monitoring", "cattle-monitoring-system"),
    ("vm-import-controller", "harvester-system"),
)


class Kills(NoHook):
    """A hook of the middleware that kills the command at its n-th write: before the write, or after it."""

    def __init__(self) -> None:
        #: Ordinal of the write that kills, counted from now on; 0 for none.
        self.at = 0
        self.after_effect = False
        #: Verb and path of each write.
        self.writes: list[str] = []

    async def before(self, number: int, call: Call) -> None:
        _ = number
        self.writes.append(f"{call.verb} {call.path}")
        if self.at == len(self.writes) and not self.after_effect:
            raise Killed(self.writes[-1])

    async def after(self, number: int, call: Call, response: Response) -> None:
        _ = number, call, response
        if self.at == len(self.writes) and self.after_effect:
            raise Killed(self.writes[-1])


@dataclass(slots=True, kw_only=True)
class ClusterUpgrade:
    """The command and its world."""

    world: ToolkitWorld
    client: Client
    helm: SimulatedHelm
    kills: Kills
    folder: Path

    async def run(self) -> None:
        """Run the command in a new Pod. Raises StepFailed, and Killed."""
        folder = self.folder / str(len(list(self.folder.iterdir())))
        folder.mkdir()
        await self.world.run(
            COMMAND, client=self.client, helm=Helm(self.helm, environment={}), folder=folder, node="", pod=""
        )


def services(**changes: Any) -> Scenario:
    """Return a scenario of one node with all services, add-ons and no VMs."""
    base = scenarios.load("one-node").changed(services=True, vms={"machines": ()}, addons=_ADDONS, jitter=0.0)
    return base.changed(**changes) if changes else base


@asynccontextmanager
async def cluster_upgrade(folder: Path, scenario: Scenario | None = None) -> AsyncIterator[ClusterUpgrade]:
    """Create the cluster with its actors, and the command, whose writes and helm's pass the fault middleware."""
    scenario = scenario or services()
    async with toolkit_world(folder, iso_of(scenario), scenario=scenario, actors=True) as world:
        middleware = world.simulation.middleware
        client = Client(middleware, user_agent="toolkit", random=Random(1), field_validation="Strict")
        kills = middleware.hook = Kills()
        pods = folder / "pods"
        pods.mkdir(exist_ok=True)
        yield ClusterUpgrade(world=world, client=client, helm=SimulatedHelm(client), kills=kills, folder=pods)


@asynccontextmanager
async def services_world(folder: Path, *, simulate: Simulate = embedded, **changes: Any) -> AsyncIterator[ToolkitWorld]:
    """Create the same cluster without its actors, for single steps."""
    scenario = services(**changes)
    async with toolkit_world(folder, iso_of(scenario), scenario=scenario, simulate=simulate) as world:
        yield world


#: The end state after an undisturbed run and the number of its writes, once it was run.
_finished: list[tuple[str, int]] = []


async def finished(folder: Path) -> tuple[str, int]:
    """Return the end state after an undisturbed run, and the number of its writes: the same ones each time."""
    if not _finished:
        async with cluster_upgrade(folder) as upgrade:
            await upgrade.run()
            _finished.append((await end_state(upgrade.world.client), len(upgrade.kills.writes)))
    return _finished[0]


def iso_of(scenario: Scenario) -> dict[str, bytes]:
    """Return the files of the release's ISO that the command reads."""
    rancher = f"docker.io/rancher/system-agent-installer-rancher:{scenario.release.rancher}"
    repository = f"docker.io/rancher/harvester-cluster-repo:{scenario.release.harvester}"
    addons = [f"docker.io/rancher/{name}:{scenario.release.harvester}" for name in ADDON_IMAGES]
    lists = {"common": [repository, *addons], "rke2": ["docker.io/rancher/rke2:v1"], "agent": [rancher]}
    images = {name: [{"list": f"/{name}.txt", "archive": f"/{name}.tar.zst"}] for name in lists}
    chart = f"rancher-{scenario.release.rancher.removeprefix('v')}.tgz"
    return {
        "/harvester-release.yaml": release_text(scenario).encode(),
        "/bundle/metadata.yaml": yaml.safe_dump({"images": images}).encode(),
        **{f"/bundle/{name}.txt": "\n".join(listed).encode() for name, listed in lists.items()},
        "/bundle/agent.tar.zst": installer_archive(rancher, {"helm": b"program", chart: b"chart"}),
    }


async def end_state(client: Client) -> str:
    """Return what the command changed, in a form that does not depend on when it ran."""
    state: dict[str, Any] = {}
    for chart in (await client.list(MANAGED_CHARTS)).items:
        records = {key: value for key, value in objects.annotations_of(chart).items() if key.startswith(PREFIX)}
        ready = without_effect(chart, objects.spec(chart)["version"])
        state[f"ManagedChart {objects.name(chart)}"] = {**objects.spec(chart), "records": records, "missing": ready}
    for addon in (await client.list(ADDONS)).items:
        state[f"Addon {objects.name(addon)}"] = {**objects.spec(addon), **objects.status(addon), "conditions": None}
    for kubevirt in (await client.list(KUBEVIRTS)).items:
        state["KubeVirt"] = {**objects.spec(kubevirt), "version": objects.status(kubevirt)["observedKubeVirtVersion"]}
    for deployment in (await client.list(DEPLOYMENTS)).items:
        state[f"Deployment {objects.name(deployment)}"] = objects.spec(deployment)["template"]["spec"]["containers"]
    feature = await client.get(RANCHER_FEATURES, "multi-cluster-management")
    state["Feature multi-cluster-management"] = objects.status(feature)
    multus = await client.get(HELM_CHART_CONFIGS, "rke2-multus", namespace="kube-system")
    state["HelmChartConfig rke2-multus"] = objects.spec(multus)
    for kind in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        state[kind.kind] = [objects.name(one) for one in (await client.list(kind)).items]
    secret = await client.get(SECRETS, "stv-aggregation", namespace="cattle-system")
    state["Secret stv-aggregation"] = [secret["type"], secret.get("data")]
    overcommit = await client.get(SETTINGS, "overcommit-config")
    state["Setting overcommit-config"] = [overcommit["value"], overcommit["default"]]
    definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "cdis.cdi.kubevirt.io")
    schema = objects.spec(definition)["versions"][0]["schema"]["openAPIV3Schema"]
    fields = sorted(schema["properties"]["spec"]["properties"])
    state[f"CustomResourceDefinition {objects.name(definition)}"] = {
        "labels": objects.labels(definition),
        "annotations": objects.annotations_of(definition),
        "fields": fields,
    }
    config = await client.get(CONFIG_MAPS, "fleet-controller", namespace="cattle-fleet-system")
    state["ConfigMap fleet-controller"] = json.loads(config["data"]["config"])
    repository = await client.get(CLUSTER_REPOS, "harvester-charts")
    state["ClusterRepo harvester-charts"] = objects.annotations_of(repository)
    storage = HelmStorage(client)
    for name, namespace in _RELEASES:
        latest = (await storage.revisions(name, namespace))[-1]
        state[f"Helm {name}"] = {key: latest[key] for key in ("info", "chart", "config")}
    return json.dumps(state, indent=1, sort_keys=True)
