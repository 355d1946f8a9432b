"""Plans and clusters, and the decision of the API server, the webhook and Initialize about each pair."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from hack import scenario as scenarios
from hack.apiserver.crds import CRDS
from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.managers.upgrade import UpgradeRun, condition, phases_of
from tests.support.webhook.surroundings import plan_of
from tests.support.webhook.webhook import NO_CACHES
from upgrade_manager.api import keys
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError, NotFound
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    NODES,
    PROVISIONING_CLUSTERS,
    SETTINGS,
    UPGRADE_PLANS,
    UPGRADES,
    VERSIONS,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)
from upgrade_manager.release.unfinished import UnfinishedUpgrade
from webhook.admission import Admission
from webhook.cluster import LiveReader
from webhook.review import PLAN_KIND, AdmissionRequest

#: Virtual seconds after which a plan in Initialize, which gives kubelets three minutes, counts as refused.
STUCK = 240.0
#: The same while the plan reports an error, which lasts.
FAILING = 5.0
LOOK = 0.5
_PLACE = keys.HARVESTER_SYSTEM
_PINNED = f"{keys.DEFAULT_TOOLKIT_IMAGE}@sha256:{'a' * 64}"


def annotated(key: str, value: str, **spec: Any) -> dict[str, Any]:
    """Return a plan by a Version with one annotation."""
    return plan_of({"version": "v1.8.0", **spec}, annotations={key: value})


#: 40 plans, by what is special about each.
PLANS: dict[str, dict[str, Any]] = {
    "version": plan_of({"version": "v1.8.0"}),
    "image": plan_of({"image": "harvester-v1.8.0"}),
    "qualified image": plan_of({"image": f"{_PLACE}/harvester-v1.8.0"}),
    "version and image": plan_of({"version": "v1.8.0", "image": "harvester-v1.8.0"}),
    "no release": plan_of({}),
    "missing version": plan_of({"version": "v9"}),
    "downgrade": plan_of({"version": "v1.6.0"}),
    "forced downgrade": plan_of({"version": "v1.6.0", "force": True}),
    "unknown pair": plan_of({"version": "v1.9.0"}),
    "forced pair": plan_of({"version": "v1.9.0", "force": True}),
    "minimum version": plan_of({"version": "v1.8.1"}),
    "forced below minimum": plan_of({"version": "v1.8.1", "force": True}),
    "running version": plan_of({"version": "v1.7.1"}),
    "forced running version": plan_of({"version": "v1.7.1", "force": True}),
    "development build": plan_of({"version": "master-1a2b3c4d"}),
    "forced development build": plan_of({"version": "master-1a2b3c4d", "force": True}),
    "version without ISO": plan_of({"version": "v1.8.2"}),
    "missing image": plan_of({"image": "none"}),
    "image elsewhere": plan_of({"image": "default/harvester-v1.8.0"}),
    "malformed image": plan_of({"image": "a/b/c"}),
    "image of a VM": plan_of({"image": "ubuntu"}),
    "unknown field": plan_of({"version": "v1.8.0", "versoin": "v1.8.0"}),
    "wrong type": plan_of({"version": "v1.8.0", "force": "yes"}),
    "malformed version": plan_of({"version": "V1 8"}),
    "malformed name": plan_of({"version": "v1.8.0"}, name="De mo"),
    "malformed tag": plan_of({"version": "v1.8.0", "upgrade": "a b"}),
    "tag": plan_of({"version": "v1.8.0", "upgrade": "v1.8.0"}),
    "paused node": plan_of({"version": "v1.8.0", "nodeUpgradeOption": {"pauseNodes": ["node-0"]}}),
    "unknown paused node": plan_of({"version": "v1.8.0", "nodeUpgradeOption": {"pauseNodes": ["node-9"]}}),
    "no preload": plan_of({"version": "v1.8.0", "imagePreloadOption": {"concurrency": -1}, "restoreVM": True}),
    "no disk check": annotated(keys.ANNOTATION_SKIP_DISK_CHECK, "true"),
    "invalid disk check": annotated(keys.ANNOTATION_SKIP_DISK_CHECK, "yes"),
    "two days": annotated(keys.ANNOTATION_MIN_CERTS_DAYS, "2"),
    "many days": annotated(keys.ANNOTATION_MIN_CERTS_DAYS, "9999"),
    "no days": annotated(keys.ANNOTATION_MIN_CERTS_DAYS, "0"),
    "foreign toolkit": annotated(keys.ANNOTATION_TOOLKIT_IMAGE, "evil/toolkit"),
    "pinned toolkit": annotated(keys.ANNOTATION_TOOLKIT_IMAGE, _PINNED),
    "own toolkit": annotated(keys.ANNOTATION_TOOLKIT_KIND, "own"),
    "no webhook": annotated(keys.ANNOTATION_SKIP_WEBHOOK, "true"),
    "unknown annotation": annotated(f"{keys.PREFIX}/skip-webhok", "true"),
}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A scenario, and what is changed before the first plan."""

    scenario: Scenario
    change: Callable[[Simulation], Awaitable[None]]
    #: The number of PLANS that start.
    starts: int


async def _nothing(_: Simulation) -> None:
    pass


async def run_release(simulation: Simulation, version: str, *, nodes: bool) -> None:
    """Let Harvester, and the nodes, report a release."""
    client = simulation.client()
    await client.patch(SETTINGS, keys.SETTING_SERVER_VERSION, MergePatch({"value": version}))
    for node in (await client.list(NODES)).items if nodes else ():
        patch = MergePatch({"status": {"nodeInfo": {"osImage": f"Harvester {version}"}}})
        await client.patch(NODES, objects.name(node), patch, subresource="status")


async def _begin(simulation: Simulation) -> None:
    unfinished = UnfinishedUpgrade(previous="v1.7.1", release="v1.8.1", os="Harvester v1.8.1")
    patch = MergePatch({"metadata": {"annotations": {keys.ANNOTATION_UNFINISHED_UPGRADE: unfinished.annotation()}}})
    await simulation.client().patch(PROVISIONING_CLUSTERS, "local", patch, namespace=keys.FLEET_LOCAL)


async def _begin_builtin_and_cordon(simulation: Simulation) -> None:
    await simulation.client().patch(NODES, "node-0", MergePatch({"spec": {"unschedulable": True}}))
    labels = {"harvesterhci.io/upgradeState": "UpgradingNodes"}
    await put(simulation, UPGRADES, "hvst-upgrade-1", {"version": "v1.8.0"}, labels=labels)


async def _remove_harvester(simulation: Simulation) -> None:
    for definition in (await simulation.client().list(CRDS)).items:
        if objects.name(definition) != UPGRADE_PLANS.name:
            await simulation.client().delete(CRDS, objects.name(definition))


async def put(simulation: Simulation, resource: Resource, name: str, spec: Object, **metadata: Any) -> None:
    """Create an object in harvester-system."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    manifest = {**head, "metadata": {"name": name, "namespace": _PLACE, **metadata}, "spec": spec}
    await simulation.client().create(resource, manifest)


def _of(
    starts: int,
    change: Callable[[Simulation], Awaitable[None]] = _nothing,
    *,
    name: str = "three-nodes",
    **more: Any,
) -> Cluster:
    return Cluster(scenario=scenarios.load(name).changed(**more), change=change, starts=starts)


#: 10 clusters, by what is special about each.
CLUSTERS = {
    "three nodes": _of(17),
    "one node": _of(17, name="one-node"),
    "full disk": _of(1, nodes={"disks": {"node-1": {"used_gib": 250}}}),
    "silent kubelet": _of(1, nodes={"disks": {"node-1": {"answers": False}}}),
    "certificates": _of(1, api_servers={"10.53.0.2": {"days": 3}}),
    "upgraded": _of(17, lambda one: run_release(one, "v1.8.0", nodes=True)),
    "too old": _of(8, lambda one: run_release(one, "v1.6.1", nodes=False)),
    "begun upgrade": _of(4, _begin),
    "built-in upgrade and cordoned node": _of(0, _begin_builtin_and_cordon),
    "no Harvester": _of(0, _remove_harvester),
}


async def add_releases(simulation: Simulation) -> None:
    """Create the Versions and the image that the plans name beside the scenario's."""
    url, checksum = simulation.iso_url, "ab" * 64
    for name, minimum in (
        ("v1.6.0", ""),
        ("v1.7.1", ""),
        ("v1.8.1", "v1.8.0"),
        ("v1.9.0", ""),
        ("master-1a2b3c4d", ""),
    ):
        spec = {"isoURL": url, "isoChecksum": checksum, "minUpgradableVersion": minimum, "releaseDate": "20260101"}
        await put(simulation, VERSIONS, name, spec)
    await put(simulation, VERSIONS, "v1.8.2", {"isoURL": "", "isoChecksum": "", "releaseDate": "20260101"})
    source = {"displayName": "ubuntu", "sourceType": "download", "url": "http://example.invalid/ubuntu.img"}
    await put(simulation, VIRTUAL_MACHINE_IMAGES, "ubuntu", source)


async def refusal(stage: UpgradeRun, plan: Object) -> str:
    """Return who refuses the plan and why; empty if it starts. The plan does not exist afterwards."""
    client = stage.client
    admission = Admission(LiveReader(client), caches=NO_CACHES, toolkit=TOOLKIT)
    request = AdmissionRequest(
        uid="1", operation="CREATE", kind=PLAN_KIND, subresource="", name=objects.name(plan), new=plan, old=None
    )
    verdict = await admission.decide(request)
    try:
        await client.raw("POST", UPGRADE_PLANS.path(), query=(("fieldValidation", "Strict"),), body=plan)
    except KubeError as error:
        return f"API server: {error}"
    problem = await _of_initialize(stage)
    await _remove(stage)
    if verdict.findings:
        return f"webhook: {verdict.findings[0].message}"
    return f"Initialize: {problem}" if problem else ""


async def _of_initialize(stage: UpgradeRun) -> str:
    """Return why the running manager does not start the plan; empty if the plan reaches ISODownloading."""
    clock, failing = asyncio.get_running_loop().time, 0.0
    began = clock()
    while clock() - began < STUCK:
        plan = await stage.polled()
        if condition(plan, "Progressing")[0] == "False":
            return condition(plan, "Progressing")[2]
        if "ISODownloading" in phases_of(plan):
            return ""
        status, _, error = condition(plan, "Degraded")
        failing = (failing or clock()) if status == "True" else 0.0
        if failing and clock() - failing >= FAILING:
            return error
        await asyncio.sleep(LOOK)
    return "stuck"


async def _remove(stage: UpgradeRun) -> None:
    await stage.client.delete(UPGRADE_PLANS, stage.name)
    try:
        async with asyncio.timeout(STUCK):
            while True:
                await stage.polled()
                await asyncio.sleep(LOOK)
    except NotFound:
        return
