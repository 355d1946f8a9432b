from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.toolkit import PLAN, toolkit_world
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.toolkit.run.errors import StepFailed


async def _guard(folder: Path, *, current: str, target: str, minimum: str = "", force: bool = False) -> str:
    """Return the refusal, empty without one."""
    async with toolkit_world(folder) as world:
        release: dict[str, Any] = {"harvester": target, "minUpgradableVersion": minimum}
        status = {"status": {"previousVersion": current, "releaseMetadata": release}}
        await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch(status), subresource="status")
        await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch({"spec": {"force": force}}))
        try:
            await world.run("version-guard")
        except StepFailed as error:
            return str(error)
    return ""


@pytest.mark.parametrize(
    ("plan", "refusal"),
    [
        pytest.param({"current": "v1.7.1", "target": "v1.8.0", "minimum": "v1.7.0"}, "", id="supported"),
        pytest.param({"current": "v1.8.0", "target": "v1.7.1", "force": True}, "", id="forced"),
        pytest.param(
            {"current": "v1.6.1", "target": "v1.8.0", "minimum": "v1.7.0"},
            "check-version: upgrade from v1.6.1 to v1.8.0 is not allowed: ",
            id="below-minimum",
        ),
        pytest.param(
            {"current": "", "target": "v1.8.0"},
            "check-version: upgrade from an unknown version to v1.8.0 is not allowed: ",
            id="unknown-current-version",
        ),
    ],
)
async def test_guard(tmp_path: Path, plan: dict[str, Any], refusal: str) -> None:
    found = await _guard(tmp_path, **plan)
    assert bool(found) is bool(refusal)
    assert found.startswith(refusal)
