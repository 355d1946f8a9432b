from __future__ import annotations

from pathlib import Path

import pytest

from hack.actors.helm_storage import HelmStorage
from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.toolkit.charts.helm_releases import release_missing
from upgrade_manager.toolkit.charts.rancher import RANCHER


@pytest.mark.parametrize(
    ("status", "chart", "missing"),
    [
        pytest.param("deployed", "rancher-2.13.1", "", id="deployed"),
        pytest.param(
            "deployed", "rancher-2.14.0", "has chart rancher-2.13.1 (deployed) instead of rancher-2.14.0", id="older"
        ),
        pytest.param("failed", "rancher-2.13.1", "is failed with chart rancher-2.13.1", id="failed"),
        pytest.param(
            "pending-upgrade",
            "rancher-2.13.1",
            "is pending-upgrade with chart rancher-2.13.1; if helm was interrupted, the revision is removed 10 min "
            "after it began",
            id="pending",
        ),
    ],
)
async def test_what_a_release_lacks(tmp_path: Path, status: str, chart: str, missing: str) -> None:
    async with services_world(tmp_path) as world:
        storage = HelmStorage(world.client)
        await storage.set_status((await storage.revisions(RANCHER.name, RANCHER.namespace))[-1], status)
        found = await release_missing(world.context(), RANCHER, chart=chart)
        assert found == (f"{RANCHER} {missing}" if missing else "")
