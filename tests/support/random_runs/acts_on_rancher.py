"""Acts of users and other controllers on Rancher's objects during a random upgrade."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from hack.apiserver.status import bad_request
from hack.cluster.seed_nodes import machine_name, secret_name
from tests.support.random_runs.undoing import undone
from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, ANNOTATION_PRE_HOOK, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.facts.machine_plan import REQUESTED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS, SECRETS

if TYPE_CHECKING:
    from hack.apiserver.admission import Operation, WriteOptions
    from hack.apiserver.resources import Row
    from tests.support.managers.upgrade import UpgradeRun
    from tests.support.random_runs.interference import Interference
    from upgrade_manager.kube.objects import Object

_STUCK = "example.com/stuck"
_REFUSAL = "can't enable maintenance mode or cordon on the last available node"


async def kubernetes_set_back(stage: UpgradeRun, act: Interference) -> None:
    """Set the Kubernetes version of Rancher's cluster back, as GitOps does, and then to the release's again."""
    scenario = stage.simulation.scenario
    cluster = await stage.client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if objects.spec(cluster)["kubernetesVersion"] != scenario.release.kubernetes:
        return
    async with undone(lambda: _set_kubernetes(stage, scenario.release.kubernetes)):
        await _set_kubernetes(stage, scenario.software.kubernetes)
        await asyncio.sleep(act.lasts)


async def _set_kubernetes(stage: UpgradeRun, version: str) -> None:
    patch = MergePatch({"spec": {"kubernetesVersion": version}})
    await stage.client.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)


async def hook_answered(stage: UpgradeRun, act: Interference) -> None:
    """Answer the next pending hook of a node by hand, as the message of a failed plan says."""
    name = secret_name(act.node)
    for _ in range(max(1, int(act.lasts))):
        annotations = objects.annotations_of(await stage.client.get(SECRETS, name, namespace=FLEET_LOCAL))
        for hook in (ANNOTATION_PRE_HOOK, ANNOTATION_POST_HOOK):
            value = annotations.get(REQUESTED[hook])
            if value and annotations.get(hook) != value:
                patch = MergePatch({"metadata": {"annotations": {hook: value}}})
                await stage.client.patch(SECRETS, name, patch, namespace=FLEET_LOCAL)
                return
        await asyncio.sleep(1)


async def machine_stuck(stage: UpgradeRun, act: Interference) -> None:
    """Let another Machine of the node hang in its deletion, as after a reinstallation."""
    machine = await stage.client.get(MACHINES, machine_name(act.node), namespace=FLEET_LOCAL)
    name = f"custom-000-{act.node}"
    metadata = {"name": name, "namespace": FLEET_LOCAL, "labels": objects.labels(machine), "finalizers": [_STUCK]}
    stuck = {key: value for key, value in machine.items() if key != "status"} | {"metadata": metadata}

    async def release() -> None:
        patch = MergePatch({"metadata": {"finalizers": None}})
        await stage.client.patch(MACHINES, name, patch, namespace=FLEET_LOCAL)

    async with undone(release):
        # Another act on the node, or an attempt that the API server has interrupted, may have created it.
        with suppress(AlreadyExists):
            await stage.client.create(MACHINES, stuck)
        status = MergePatch({"status": machine["status"]})
        await stage.client.patch(MACHINES, name, status, namespace=FLEET_LOCAL, subresource="status")
        await stage.client.delete(MACHINES, name, namespace=FLEET_LOCAL)
        await asyncio.sleep(act.lasts)


async def cordons_refused(stage: UpgradeRun, act: Interference) -> None:
    """Refuse to cordon any node for a while."""

    def refuse(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
        _ = (operation, options)
        is_cordon = objects.spec(new).get("unschedulable") and not objects.spec(old or {}).get("unschedulable")
        if row.resource == NODES and is_cordon:
            raise bad_request(_REFUSAL)
        return new

    stages = stage.simulation.server.chain.validating
    stages.append(refuse)
    try:
        await asyncio.sleep(act.lasts)
    finally:
        stages.remove(refuse)


async def drain_taint_wiped(stage: UpgradeRun, act: Interference) -> None:
    """Remove all taints of a node every second."""
    for _ in range(max(1, int(act.lasts))):
        with suppress(NotFound):
            await stage.client.patch(NODES, act.node, MergePatch({"spec": {"taints": None}}))
        await asyncio.sleep(1)
