"""The incidents by name: at least one for each reason of a blocker, and plans that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hack.actors.freezer import kubelet_of, registry_of
from hack.demo.commands import Create
from hack.demo.stalls import STALLS, Stall
from tests.support.cluster.simulate import SECOND, RepairableScenario
from tests.support.managers.incidents import Damage, Incident
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    MACHINES,
    NODES,
    PODS,
    PROVISIONING_CLUSTERS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)

#: Seconds between two attempts to damage an object.
_LOOK = 0.1
_PLACE = "fleet-local"


def _cluster(**changes: Any) -> RepairableScenario:
    return RepairableScenario.of(**{"operators": True, **changes})


def _incident(
    reason: str,
    moment: str,
    damage: Damage,
    *,
    by_hand: Damage | None = None,
    spec: Mapping[str, Any] = BY_VERSION,
    **changes: Any,
) -> Incident:
    return Incident(
        moment=moment,
        damage=damage,
        reasons=frozenset(filter(None, [reason])),
        scenario=_cluster(**changes),
        spec=spec,
        by_hand=by_hand or _repair,
    )


def _stall(stall: Stall) -> Incident:
    """Return an incident of the demo."""

    async def damage(run: UpgradeRun) -> None:
        commands, _ = await stall.steps(run.client, await run.plan())
        while not commands:
            await asyncio.sleep(_LOOK)
            commands, _ = await stall.steps(run.client, await run.plan())
        for command in commands:
            await command.run(run.client)

    async def by_hand(run: UpgradeRun) -> None:
        _, commands = await stall.steps(run.client, await run.plan())
        for command in commands if stall.stands_for else ():
            # The lines on the screen may have done it.
            with suppress(NotFound):
                await command.run(run.client)

    reasons = frozenset(map(str, stall.reasons))
    return replace(_incident("", stall.phase, damage), reasons=reasons, by_hand=by_hand)


async def _nothing(_: UpgradeRun) -> None:
    """Leave it at the damage that the scenario has."""


async def _lose_node(run: UpgradeRun) -> None:
    run.simulation.freezer.freeze(kubelet_of("node-1"))


async def _delete_machine(run: UpgradeRun) -> None:
    """Delete the Machine of a node, which another controller holds."""
    found = await run.client.list(MACHINES, namespace=_PLACE)
    name = next(one["metadata"]["name"] for one in found.items if one["status"]["nodeRef"]["name"] == "node-0")
    await run.client.patch(
        MACHINES, name, MergePatch({"metadata": {"finalizers": ["example.com/held"]}}), namespace=_PLACE
    )
    await run.client.delete(MACHINES, name, namespace=_PLACE)


async def _set_kubernetes_back(run: UpgradeRun) -> None:
    patch = MergePatch({"spec": {"kubernetesVersion": "v1.34.3+rke2r1"}})
    await run.client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace=_PLACE)


async def _remove_hooks(run: UpgradeRun) -> None:
    """Remove the drain hooks again and again, as a GitOps tool does that knows an older Cluster."""
    none = {"preDrainHooks": None, "postDrainHooks": None}
    for _ in range(10):
        await run.patch_cluster(upgradeStrategy={"controlPlaneDrainOptions": none, "workerDrainOptions": none})
        await asyncio.sleep(5)


async def _cordon_others(run: UpgradeRun) -> None:
    for name in ("node-1", "node-2"):
        await run.client.patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))


def _thaws(actor: str) -> Damage:
    async def by_hand(run: UpgradeRun) -> None:
        run.simulation.freezer.thaw(actor)

    return by_hand


async def _repair(run: UpgradeRun) -> None:
    """Repair the scenario's faults, in the copy that this run has."""
    assert isinstance(run.simulation.scenario, RepairableScenario)
    run.simulation.scenario.repair()


async def _end_hanging_job(run: UpgradeRun) -> None:
    """Repair what the container waits for, and delete its Pod."""
    await _repair(run)
    for pod in (await run.client.list(PODS, namespace=HARVESTER_SYSTEM)).items:
        if objects.name(pod).startswith("upgrade-cluster-upgrade"):
            await run.client.delete(PODS, objects.name(pod), namespace=HARVESTER_SYSTEM)


async def _hang_up_starts(run: UpgradeRun) -> None:
    await run.until_node("PostDrained", node="node-1")
    run.simulation.freezer.freeze("VirtualMachineController")


async def _close_registry(run: UpgradeRun) -> None:
    run.simulation.freezer.freeze(registry_of("node-1"))


async def _refuse_removals(run: UpgradeRun) -> None:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["deployments"]}
    webhook = {
        "name": "policy.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/deny"},
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    manifest = {"metadata": {"name": "policy.example.com"}, "webhooks": [webhook]}
    await Create(resource=VALIDATING_WEBHOOK_CONFIGURATIONS, manifest=manifest).run(run.client)


def _full_disk(work: str) -> dict[str, Any]:
    """Return the scenario in which this work fails on the second node."""
    fault = {"work": work, "node": SECOND, "message": "no space left on device"}
    return {"faults": [fault], "upgrade_controller": {"backoff_limit": 1}}


#: The administrator has loaded the images before.
_PRELOADED = {**BY_VERSION, "imagePreloadOption": {"concurrency": -1}}
_SLOW: dict[str, Any] = {"durations": {"pre_drain": 120}}
_FIXED_VM = {"name": "fixed", "node": "node-1", "migratable": False}
_STUCK_VM = {"name": "db", "node": "node-0", "failing_migrations": 1000}
_ROWS = {
    "vm-stuck": replace(
        _incident("MigrationStuck", "NodeUpgrading", _nothing, vms={"count": 0, "machines": [_STUCK_VM]}),
        options=replace(OWN, leader_elect=True),
    ),
    "webhook": replace(_stall(STALLS["write-refused"]), moment="PreDrained", reasons=frozenset({"WriteRefused"})),
    "job-slow": _incident(
        "JobSlow",
        "ClusterUpgrading",
        _nothing,
        by_hand=_end_hanging_job,
        faults=[{"work": "manifests", "hang": True}],
    ),
    "cleanup": _incident("CleanupRefused", "CleaningUp", _refuse_removals),
    "node-down": _incident(
        "NodeUnavailable", "PreDraining", _lose_node, by_hand=_thaws(kubelet_of("node-1")), durations={"pre_drain": 120}
    ),
    "machine": _incident("MachineAmbiguous", "PreDraining", _delete_machine, **_SLOW),
    "kubernetes": _incident("KubernetesVersionChanged", "PostDraining", _set_kubernetes_back),
    "contest": _incident("StrategyContested", "PreDraining", _remove_hooks, durations={"pre_drain": 300}),
    "cordon": _incident("CordonRefused", "ClusterUpgrading", _cordon_others),
    "vm-off": _incident(
        "LedgerUnsettled",
        "NodeUpgrading",
        _hang_up_starts,
        by_hand=_thaws("VirtualMachineController"),
        spec={**BY_VERSION, "restoreVM": True},
        vms={"count": 0, "machines": [_FIXED_VM]},
    ),
    "image-missing": _incident(
        "ImageMissing", "ImagePreloading", _close_registry, by_hand=_thaws(registry_of("node-1")), spec=_PRELOADED
    ),
    "dead-manager": replace(_incident("", "PreDraining", _nothing, durations={"pre_drain": 900}), is_dead=True),
    "failed-os": _incident("", "NodeUpgrading", _nothing, **_full_disk("post-drain")),
    "failed-iso": _incident("", "ISODownloading", _nothing, image_import={"attempts": 99, "message": "unexpected EOF"}),
    "failed-disk": _incident("", "Initializing", _nothing, nodes={"disks": {"node-1": {"used_gib": 250}}}),
    "failed-preload": _incident("", "ImagePreloading", _nothing, **_full_disk("prepare")),
}
#: The incidents by name.
INCIDENTS = {**{name: _stall(one) for name, one in STALLS.items()}, **_ROWS}
