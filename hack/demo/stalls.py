"""Breaks of a running upgrade, each with the blocker that appears and the remedy that clears it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.actors.freezer import NAMESPACES as DEPLOYED_IN
from hack.actors.freezer import PROCESSES, REGISTRY, REPOSITORY, RUNTIME, boot_of, kubelet_of
from hack.actors.machine_plan import DRAIN_OPTIONS, SECRET_SELECTOR, Plans, encoded
from hack.actors.switch import KEY, NAMESPACE
from hack.actors.tiers import tiers
from hack.demo.budgets import forbid_evictions, protect_vm
from hack.demo.commands import Create, Delete, Patch, creation, restart, scale
from upgrade_manager.api.blockers import BlockerReason as Reason
from upgrade_manager.api.keys import (
    CATTLE_SYSTEM,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    LONGHORN_SYSTEM,
    MANAGED_LABEL,
    PROVISIONING_CLUSTER,
    RKE_MACHINE_NAME,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    LONGHORN_VOLUMES,
    MACHINES,
    MANAGED_CHARTS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SERVICE_ACCOUNTS,
    UPGRADE_PLANS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeAlias

    from hack.demo.commands import Command
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

    #: Returns the damage, empty while it cannot be done yet, and the remedy.
    Steps: TypeAlias = Callable[[Client, Object], Awaitable[tuple[Sequence[Command], Sequence[Command]]]]

SUC, RANCHER = "system-upgrade-controller", "rancher"
_TAINT = "example.com/maintenance"
_WEBHOOK = "policy.example.com"
_HOOK = "example.com/backup"
#: No disk has this tag.
_DISK_TAG = "nvme"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One way to hold an upgrade up."""

    #: The phase value with which it begins.
    phase: str
    #: The description of the break, in a sentence.
    what: str
    #: The blockers of which one appears; empty if the plan fails.
    reasons: frozenset[Reason]
    steps: Steps
    #: The work outside of the API server that the mending stands for; empty if it is the product's remedy.
    stands_for: str = ""


def _freezing(what: str) -> tuple[Command, Command]:
    """Freeze a part of the cluster that no API object stands for, and thaw it."""
    place = {"name": f"broken-{what.lower()}", "namespace": NAMESPACE}
    damage = Create(resource=CONFIG_MAPS, manifest={"metadata": place, "data": {KEY: what}})
    return damage, Delete(resource=CONFIG_MAPS, **place)


def _frozen(what: str) -> Steps:
    async def steps(_: Client, __: Object) -> tuple[Sequence[Command], Sequence[Command]]:
        damage, remedy = _freezing(what)
        return [damage], [remedy]

    return steps


def _hanging(*actors: str) -> Steps:
    """Let parts of a controller hang until its Deployment is restarted."""
    process = PROCESSES.get(actors[0], actors[0])

    async def steps(_: Client, __: Object) -> tuple[Sequence[Command], Sequence[Command]]:
        return [_freezing(actor)[0] for actor in actors], [restart(process, DEPLOYED_IN[process])]

    return steps


async def _hanging_repository(_: Client, plan: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    return [_freezing(REPOSITORY)[0]], [restart(f"{objects.name(plan)}-repo", HARVESTER_SYSTEM)]


def _stopped(name: str) -> Steps:
    """Scale the Deployment of a controller down."""

    async def steps(_: Client, __: Object) -> tuple[Sequence[Command], Sequence[Command]]:
        return [scale(DEPLOYMENTS, name, CATTLE_SYSTEM, 0)], [scale(DEPLOYMENTS, name, CATTLE_SYSTEM, 1)]

    return steps


async def _taint(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    nodes = (await client.list(NODES)).items
    taint = {"key": _TAINT, "effect": "NoSchedule"}

    def patch(node: Object, *, on: bool) -> Patch:
        kept = [one for one in objects.spec(node).get("taints") or () if one.get("key") != _TAINT]
        body = {"spec": {"taints": [*kept, taint] if on else kept or None}}
        text = f"kubectl taint node {objects.name(node)} {_TAINT}:NoSchedule{'' if on else '-'}"
        return Patch(resource=NODES, name=objects.name(node), body=body, text=text)

    return [patch(one, on=True) for one in nodes], [patch(one, on=False) for one in nodes]


async def _account(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    account = await client.get(SERVICE_ACCOUNTS, "harvester", namespace=HARVESTER_SYSTEM)
    damage = Delete(resource=SERVICE_ACCOUNTS, name="harvester", namespace=HARVESTER_SYSTEM)
    text = "kubectl create serviceaccount -n harvester-system harvester"
    return [damage], [Create(resource=SERVICE_ACCOUNTS, manifest=creation(account), text=text)]


async def _joining(_: Client, __: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Let Rancher register a node that never boots."""
    place = {"name": "custom-joining", "namespace": FLEET_LOCAL}
    spec = {"clusterName": PROVISIONING_CLUSTER, "bootstrap": {}, "infrastructureRef": {}}
    return [Create(resource=MACHINES, manifest={"metadata": place, "spec": spec})], [Delete(resource=MACHINES, **place)]


async def _unmanaged(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    name = max(objects.name(node) for node in (await client.list(NODES)).items)

    def patch(value: str | None) -> Patch:
        body = {"metadata": {"labels": {MANAGED_LABEL: value}}}
        text = f"kubectl label node {name} {MANAGED_LABEL}{'-' if value is None else '=' + value}"
        return Patch(resource=NODES, name=name, body=body, text=text)

    return [patch(None)], [patch("true")]


async def _paused(client: Client, plan: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    names = sorted(objects.name(node) for node in (await client.list(NODES)).items)

    def patch(nodes: list[str]) -> Patch:
        body = {"spec": {"nodeUpgradeOption": {"pauseNodes": nodes}}}
        return Patch(resource=UPGRADE_PLANS, name=objects.name(plan), body=body)

    return [patch(names[:1])], [patch([])]


async def _refused(_: Client, __: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
    webhook = {
        "name": _WEBHOOK,
        "clientConfig": {"url": "https://127.0.0.1:9/deny"},
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    manifest = {"metadata": {"name": _WEBHOOK}, "webhooks": [webhook]}
    damage = Create(resource=VALIDATING_WEBHOOK_CONFIGURATIONS, manifest=manifest)
    return [damage], [Delete(resource=VALIDATING_WEBHOOK_CONFIGURATIONS, name=_WEBHOOK)]


async def _foreign_hook(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Add another controller's hook beside the manager's, which that controller never acknowledges."""
    cluster = await _cluster(client)

    def patch(extra: list[Object]) -> Patch:
        keys = ("controlPlaneDrainOptions", "workerDrainOptions")
        changed = {key: {"preDrainHooks": [*_hooks(cluster, key), *extra]} for key in keys}
        return _rke_patch({"upgradeStrategy": changed})

    return ([patch([{"annotation": _HOOK}])] if _hooks(cluster) else []), [patch([])]


async def _undrained(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Upgrade the last machine's Kubernetes as Rancher does where it has no hooks: without a drain."""
    cluster = await _cluster(client)
    machines = (await client.list(MACHINES, namespace=FLEET_LOCAL)).items
    listed = (await client.list(SECRETS, namespace=FLEET_LOCAL, field_selector=SECRET_SELECTOR)).items
    secrets = {objects.labels(secret).get(RKE_MACHINE_NAME, ""): secret for secret in listed}
    machine = tiers(cluster, machines, secrets)[-1].members[-1]
    name = objects.name(secrets[objects.name(machine)])
    body = {"data": {"plan": encoded(Plans(cluster).of(machine))}}
    text = f"""kubectl patch {SECRETS.name} -n {FLEET_LOCAL} {name} --type=merge -p '{{"data":{{"plan":"…"}}}}'"""
    damage = Patch(resource=SECRETS, name=name, namespace=FLEET_LOCAL, body=body, text=text)
    generation = (objects.spec(cluster).get("rkeConfig") or {}).get("provisionGeneration") or 0
    # Before its first drain, Rancher may still plan by the Cluster before the upgrade.
    drains = any(DRAIN_OPTIONS in objects.annotations_of(secret) for secret in listed)
    return ([damage] if _hooks(cluster) and drains else []), [_rke_patch({"provisionGeneration": generation + 1})]


async def _uncordoned(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Uncordon the node that Rancher is about to drain."""
    cordoned = [node for node in (await client.list(NODES)).items if objects.spec(node).get("unschedulable")]

    def patch(name: str, *, on: bool) -> Patch:
        body = {"spec": {"unschedulable": True if on else None}}
        return Patch(resource=NODES, name=name, body=body, text=f"kubectl {'cordon' if on else 'uncordon'} {name}")

    names = sorted(map(objects.name, cordoned))[:1]
    return [patch(name, on=False) for name in names], [patch(name, on=True) for name in names]


async def _suspended(client: Client, plan: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Suspend the cluster-upgrade Job, as an administrator of batch queues would."""
    name = f"{objects.name(plan)}-cluster-upgrade"

    def patch(*, on: bool) -> Patch:
        body = {"spec": {"suspend": on}}
        text = f"""kubectl patch job -n {HARVESTER_SYSTEM} {name} -p '{{"spec":{{"suspend":{str(on).lower()}}}}}'"""
        return Patch(resource=JOBS, name=name, namespace=HARVESTER_SYSTEM, body=body, text=text)

    exists = await client.find(JOBS, name, namespace=HARVESTER_SYSTEM) is not None
    return ([patch(on=True)] if exists else []), [patch(on=False)]


async def _cluster(client: Client) -> Object:
    return await client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)


def _hooks(cluster: Object, key: str = "controlPlaneDrainOptions") -> Sequence[Object]:
    """Return the hooks before a drain; none before the manager has started Rancher: there is nothing to do yet."""
    strategy = (objects.spec(cluster).get("rkeConfig") or {}).get("upgradeStrategy") or {}
    return (strategy.get(key) or {}).get("preDrainHooks") or ()


def _rke_patch(config: Object) -> Patch:
    body = {"spec": {"rkeConfig": config}}
    return Patch(resource=PROVISIONING_CLUSTERS, name=PROVISIONING_CLUSTER, namespace=FLEET_LOCAL, body=body)


async def _diskless(client: Client, _: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    """Let a volume ask for disks that do not exist: the replica that the first reboot fails is not rebuilt."""
    found = (await client.list(LONGHORN_VOLUMES, namespace=LONGHORN_SYSTEM)).items
    attached = [one for one in found if objects.status(one).get("state") == "attached"]
    # The one with the most replicas has one on the node that is rebooted, and on the next.
    ranked = sorted(attached, key=lambda one: (-(objects.spec(one).get("numberOfReplicas") or 0), objects.name(one)))

    def patch(tags: list[str] | None) -> list[Command]:
        body = {"spec": {"diskSelector": tags}}
        names = map(objects.name, ranked[:1])
        return [Patch(resource=LONGHORN_VOLUMES, name=one, namespace=LONGHORN_SYSTEM, body=body) for one in names]

    return patch([_DISK_TAG]), patch(None)


async def _old_os(client: Client, plan: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    names = sorted(objects.name(node) for node in (await client.list(NODES)).items)
    return await _frozen(boot_of(names[-1]))(client, plan)


async def _dead_kubelet(client: Client, plan: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    names = sorted(objects.name(node) for node in (await client.list(NODES)).items)
    return await _frozen(kubelet_of(names[-1]))(client, plan)


async def _paused_chart(_: Client, __: Object) -> tuple[Sequence[Command], Sequence[Command]]:
    def patch(*, paused: bool) -> Patch:
        body = {"spec": {"paused": paused}}
        return Patch(resource=MANAGED_CHARTS, name="harvester", namespace=FLEET_LOCAL, body=body)

    return [patch(paused=True)], [patch(paused=False)]


def _stall(phase: str, what: str, steps: Steps, *reasons: Reason, stands_for: str = "") -> Stall:
    return Stall(phase=phase, what=what, reasons=frozenset(reasons), steps=steps, stands_for=stands_for)


STALLS: Mapping[str, Stall] = {
    "unschedulable": _stall("ImagePreloading", "an administrator taints all nodes", _taint, Reason.POD_UNSCHEDULABLE),
    "image-pull": _stall(
        "ImagePreloading",
        "the registry does not answer",
        _frozen(REGISTRY),
        Reason.IMAGE_PULL_FAILED,
        stands_for="the repair of the registry",
    ),
    "container": _stall(
        "ImagePreloading",
        "the container runtimes are overloaded",
        _frozen(RUNTIME),
        Reason.CONTAINER_FAILING,
        stands_for="the restart of RKE2 on the nodes",
    ),
    "no-pod": _stall("ImagePreloading", "the ServiceAccount of the Jobs is deleted", _account, Reason.JOB_HAS_NO_POD),
    "scheduler": _stall(
        "ImagePreloading",
        "the scheduler hangs",
        _frozen("Scheduler"),
        Reason.POD_PENDING,
        stands_for="the restart of RKE2 on the control plane",
    ),
    "kubelet": _stall(
        "NodeUpgrading",
        "the kubelet of a node hangs",
        _dead_kubelet,
        Reason.POD_PENDING,
        stands_for="the restart of RKE2 on the node",
    ),
    "import": _stall("ISODownloading", "the importer hangs", _hanging("ImageController"), Reason.IMPORT_STUCK),
    "suc": _stall("MetadataPopulating", f"{SUC} is scaled down", _stopped(SUC), Reason.UPGRADE_CONTROLLER_SILENT),
    "repository": _stall(
        "RepoCreating", "the web server of the repository hangs", _hanging_repository, Reason.REPOSITORY_UNAVAILABLE
    ),
    "chart": _stall("ImagePreloading", "a user pauses Harvester's chart", _paused_chart, Reason.CHART_NOT_DEPLOYED),
    "reboot": _stall(
        "NodeUpgrading",
        "a node boots its old system",
        _old_os,
        Reason.NODE_NOT_BACK,
        stands_for="a reboot at the console of the node",
    ),
    "pdb": _stall("ClusterUpgrading", "an application allows no eviction", forbid_evictions, Reason.DRAIN_FAILING),
    "vm-budget": _stall(
        "ClusterUpgrading",
        "a VM cannot move, and a budget forbids to stop it",
        protect_vm,
        Reason.EVICTION_FORBIDDEN,
    ),
    "migration": _stall(
        "NodeUpgrading",
        "KubeVirt's controller hangs",
        _hanging("virt-controller"),
        Reason.MIGRATION_STUCK,
        stands_for="the repair of KubeVirt",
    ),
    "volume": _stall("NodeUpgrading", "a volume asks for disks that no node has", _diskless, Reason.VOLUME_DEGRADED),
    "rancher": _stall("NodeUpgrading", f"{RANCHER} is scaled down", _stopped(RANCHER), Reason.RANCHER_SILENT),
    "planner": _stall("NodeUpgrading", "Rancher hangs", _hanging("Planner", "Drainer"), Reason.RANCHER_SILENT),
    "node-label": _stall("NodeUpgrading", "a node loses its managed label", _unmanaged, Reason.NODE_MISSING),
    "suspended": _stall("ClusterUpgrading", "a user suspends a Job of the upgrade", _suspended, Reason.JOB_SUSPENDED),
    "uncordoned": _stall(
        "NodeUpgrading", "a user uncordons the node that is to be drained", _uncordoned, Reason.NODE_UNCORDONED
    ),
    "joining": _stall(
        "ImagePreloading",
        "a node is registered, and does not join",
        _joining,
        Reason.HOLDER_ACTIVE,
        stands_for="the decision that the node is not to join",
    ),
    "hook-foreign": _stall(
        "NodeUpgrading", "a backup tool adds a drain hook, and does not answer", _foreign_hook, Reason.HOOK_FOREIGN
    ),
    "hook-lost": _stall(
        "NodeUpgrading", "Rancher upgrades a node's Kubernetes without a drain", _undrained, Reason.HOOK_LOST
    ),
    # From here on, the manager creates the Jobs; the ones of the system-upgrade-controller follow at the end.
    "write-refused": _stall(
        "NodeUpgrading",
        "a policy engine stops, and its webhook refuses Jobs",
        _refused,
        Reason.WRITE_REFUSED,
        Reason.UPGRADE_CONTROLLER_SILENT,
        stands_for="the repair of the policy engine",
    ),
    "paused": _stall("MetadataPopulating", "a user pauses a node", _paused, Reason.NODE_PAUSED),
}
