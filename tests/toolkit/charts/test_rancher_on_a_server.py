"""The upgrade of Rancher's release by a real helm, which is ended in the middle, on a real API server.

The release before is the one that hack/actors/helm_storage.py has written.
"""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from hack.control_plane.assets import find_tool
from hack.control_plane.control_plane import ControlPlane
from tests.support.cluster.simulate import simulate_on
from tests.support.programs import helm as programs
from tests.support.toolkit.cluster_upgrade import services_world
from tests.support.toolkit.real_charts import Hook, archive, config_map, connected, pre_upgrade
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.toolkit.charts.helm import Helm, Revision
from upgrade_manager.toolkit.charts.helm_releases import INTERRUPTED_AFTER, is_pending
from upgrade_manager.toolkit.charts.rancher import RANCHER, rancher_missing, upgrade_rancher
from upgrade_manager.toolkit.host.host_programs import PodPrograms
from upgrade_manager.toolkit.run.errors import ProgramFailed

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

HOOK, OBJECT = "rancher-pre-upgrade", "rancher-chart"
BEFORE = Revision(status="deployed", chart="rancher-2.13.1", app_version="v2.13.1")
AFTER = Revision(status="deployed", chart="rancher-2.14.0", app_version="v2.14.0")
PENDING = (
    "Helm release cattle-system/rancher is pending-upgrade with chart rancher-2.14.0; if helm was interrupted, the "
    "revision is removed 10 min after it began"
)
FAILED = "Helm release cattle-system/rancher is failed with chart rancher-2.14.0"


def _now(later: timedelta) -> datetime:
    return datetime.now(UTC) + later


def _number(pid: Path) -> int:
    return int(pid.read_text())


@pytest.fixture
def pid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the toolkit find helm, which writes the number of its process into the file."""
    path = tmp_path / "bin/helm"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\necho $$ >{tmp_path}/pid\nexec {find_tool("helm", os.environ)} "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    return tmp_path / "pid"


@pytest.mark.parametrize(
    ("number", "later", "missing"),
    [
        pytest.param(signal.SIGKILL, INTERRUPTED_AFTER, PENDING, id="killed"),
        pytest.param(signal.SIGTERM, timedelta(), FAILED, id="asked to end"),
    ],
)
async def test_interrupted_upgrade_is_repeated(
    tmp_path: Path, control_plane: ControlPlane, pid: Path, number: signal.Signals, later: timedelta, missing: str
) -> None:
    async with services_world(tmp_path / "world", simulate=simulate_on(control_plane)) as world:
        helm: programs.Helm = connected(tmp_path, control_plane)
        real = Helm(PodPrograms(), environment=helm.environment)
        context = world.context(helm=real, now=partial(_now, timedelta()))
        chart = archive("rancher", "2.14.0", config_map(OBJECT, chart="2.14.0"), pre_upgrade(HOOK))
        (world.folder / "rancher-2.14.0.tgz").write_bytes(chart)
        hook = Hook(client=world.client, name=HOOK, namespace=RANCHER.namespace)
        assert await real.latest(RANCHER) == BEFORE

        upgrade = asyncio.ensure_future(upgrade_rancher(context))
        first = await hook.appears()
        os.kill(_number(pid), number)
        with pytest.raises(ProgramFailed, match="helm returned"):
            await upgrade
        assert await rancher_missing(context) == missing
        if await is_pending(context, RANCHER):
            # It may be the helm of another Pod that has not ended.
            await upgrade_rancher(context)
            assert await rancher_missing(context) == missing
        assert await world.client.find(CONFIG_MAPS, OBJECT, namespace=RANCHER.namespace) is None

        context = world.context(helm=real, now=partial(_now, later + timedelta(seconds=1)))
        upgrade = asyncio.ensure_future(upgrade_rancher(context))
        await hook.appears(after=first)
        await hook.succeeds()
        await upgrade
        assert await real.latest(RANCHER) == AFTER
        assert await rancher_missing(context) == ""
        assert await world.client.find(CONFIG_MAPS, OBJECT, namespace=RANCHER.namespace) is not None
