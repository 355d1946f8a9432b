from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import services
from tests.support.toolkit.toolkit import toolkit_world
from upgrade_manager.facts.deployments import outage_of
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS
from upgrade_manager.toolkit.charts.cluster_resources import DAEMON_SETS
from upgrade_manager.toolkit.charts.rollouts import daemon_set_missing, deployment_missing

DEPLOYMENT, DAEMON_SET = "Deployment cattle-system/rancher", "DaemonSet longhorn-system/longhorn-manager"
ROLLED_OUT = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
SCHEDULED = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 3,
    "updatedNumberScheduled": 3,
    "numberAvailable": 3,
}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        pytest.param(ROLLED_OUT, "", id="done"),
        pytest.param({**ROLLED_OUT, "observedGeneration": 0}, ": its change is not observed yet", id="not-observed"),
        pytest.param({"observedGeneration": 1}, ": 0 of 1 Pods are updated, 0 are available", id="no-pods"),
        pytest.param(
            {**ROLLED_OUT, "availableReplicas": 0}, ": 1 of 1 Pods are updated, 0 are available", id="not-available"
        ),
        pytest.param({**ROLLED_OUT, "replicas": 3}, ": 2 old Pods are not deleted", id="old-pods"),
    ],
)
async def test_deployment(tmp_path: Path, status: dict[str, Any], words: str) -> None:
    async with toolkit_world(tmp_path, scenario=services()) as world:
        patch, namespace = MergePatch({"status": status}), "cattle-system"
        await world.client.patch(DEPLOYMENTS, "rancher", patch, subresource="status", namespace=namespace)
        assert await deployment_missing(world.client, "rancher", namespace=namespace) == (words and DEPLOYMENT + words)
        assert (
            await deployment_missing(world.client, "x", namespace=namespace)
            == "Deployment cattle-system/x does not exist. Install it again: kubectl -n cattle-system get deploy"
        )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        pytest.param(SCHEDULED, "", id="done"),
        pytest.param({**SCHEDULED, "observedGeneration": 0}, ": its change is not observed yet", id="not-observed"),
        pytest.param(
            {**SCHEDULED, "updatedNumberScheduled": 2}, ": 2 of 3 Pods are updated, 3 are available", id="one-old"
        ),
        pytest.param(
            {**SCHEDULED, "numberAvailable": 1}, ": 3 of 3 Pods are updated, 1 are available", id="not-available"
        ),
    ],
)
async def test_daemon_set(tmp_path: Path, status: dict[str, Any], words: str) -> None:
    async with toolkit_world(tmp_path, scenario=services()) as world:
        patch, namespace = MergePatch({"status": status}), "longhorn-system"
        await world.client.patch(DAEMON_SETS, "longhorn-manager", patch, subresource="status", namespace=namespace)
        found = await daemon_set_missing(world.client, "longhorn-manager", namespace=namespace, nodes=0)
        assert found == (words and DAEMON_SET + words)
        assert (
            await daemon_set_missing(world.client, "x", namespace=namespace, nodes=0)
            == "DaemonSet longhorn-system/x does not exist"
        )


@pytest.mark.rule("blockers: a Deployment without replicas is a wait for Jobs, with the blocker's message and remedy")
async def test_deployment_that_is_scaled_down_is_not_rolled_out(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path, scenario=services()) as world:
        patch = MergePatch({"spec": {"replicas": 0}})
        await world.client.patch(DEPLOYMENTS, "rancher", patch, namespace="cattle-system")
        missing = await deployment_missing(world.client, "rancher", namespace="cattle-system")
    outage = outage_of({"spec": {"replicas": 0}}, "cattle-system", "rancher")
    assert outage is not None
    assert missing == f"{outage.problem}. {outage.ways_out[0]}"
