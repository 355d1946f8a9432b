"""`make run`: a manager on the user's machine, with nothing but a kubeconfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cluster.served import manager, served
from tests.support.managers.displayed import MANIFEST
from tests.support.programs.polling import eventually
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS

PORTS = ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--webhook-bind-address=0"]


@pytest.mark.rule("pipeline: from outside the cluster the repository is read through the API server")
@pytest.mark.real_loop
async def test_manager_with_a_kubeconfig_upgrades_a_cluster(tmp_path: Path) -> None:
    async with served(tmp_path, scenario="one-node", scale=0.0) as cluster:
        process = await manager("run", f"--kubeconfig={cluster.kubeconfig}", *PORTS, home=tmp_path)

        async def has_succeeded() -> bool:
            plan = await cluster.client.get(UPGRADE_PLANS, "demo")
            return objects.status(plan).get("currentPhase") == SUCCEEDED

        try:
            await cluster.client.create(UPGRADE_PLANS, MANIFEST)
            await eventually(has_succeeded, seconds=60)
        finally:
            if process.returncode is None:
                process.terminate()
            _, err = await process.communicate()
    assert (process.returncode, "Traceback" in err.decode()) == (0, False)
