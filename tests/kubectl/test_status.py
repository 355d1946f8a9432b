"""`upgrade-manager status` with a user's rights, and as a plugin of kubectl."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.kubectl import installed
from tests.support.programs.polling import eventually
from tests.support.programs.process_result import ProcessResult
from tests.support.programs.programs import install
from tests.support.server.accounts import grant

if TYPE_CHECKING:
    from tests.support.cluster.kubectl import Cluster

ROOT = Path(__file__).parents[2]
STATUS = [sys.executable, "-m", "upgrade_manager", "status"]
READ_PLANS = {"apiGroups": ["management.harvesterhci.io"], "resources": ["upgradeplans"], "verbs": ["list"]}
READ_EVENTS = {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}

pytestmark = [pytest.mark.real_loop]


async def run(*program: str, kubeconfig: Path, path: str = "") -> ProcessResult:
    process = await asyncio.create_subprocess_exec(
        *program,
        env={
            "PATH": f"{path}:{os.environ['PATH']}",
            "HOME": str(kubeconfig.parent),
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": str(ROOT),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return ProcessResult(process.returncode or 0, out.decode(), err.decode())


async def kubeconfig_of(cluster: Cluster, folder: Path, *, context: str = "") -> Path:
    """Write the kubeconfig of a user; the administrator's by default."""
    config = (await cluster.succeed("config", "view", "--raw", "-o", "json")).json
    file = folder / "user"
    file.write_text(json.dumps({**config, "current-context": context or config["current-context"]}))
    return file


@pytest.mark.servers
async def test_status_needs_rights_to_list_only(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.plan(status={"currentPhase": "NodeUpgrading"})
    bob = await kubeconfig_of(cluster, tmp_path, context="bob")
    refused = await run(*STATUS, kubeconfig=bob)
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert 'User "bob" cannot list resource "upgradeplans"' in refused.err

    async def is_shown() -> bool:
        result = await run(*STATUS, kubeconfig=bob)
        return "NodeUpgrading" in result.out and result.code == 0 and ("not shown" in result.err) is not may_read_events

    may_read_events = False
    await grant(cluster.wire, "bob", READ_PLANS)
    await eventually(is_shown, seconds=30)
    may_read_events = True
    await grant(cluster.wire, "bob", READ_EVENTS, name="events", namespace="default")
    await eventually(is_shown, seconds=30)


async def test_distribution_installs_a_plugin_of_kubectl(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.plan()
    install("kubectl-upgradeplan", tmp_path)
    admin = await kubeconfig_of(cluster, tmp_path)
    result = await run(str(installed()), "upgradeplan", "status", "demo", kubeconfig=admin, path=str(tmp_path))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("UpgradePlan  demo  Pending\n")
