"""`upgrade-manager status` and `report` with a user's rights, and as a plugin of kubectl."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.support.cluster.kubectl import ROLES, Cluster, installed
from tests.support.programs.polling import eventually
from tests.support.programs.process_result import ProcessResult
from tests.support.programs.programs import install
from tests.support.server.accounts import grant

ROOT = Path(__file__).parents[2]
STATUS = [sys.executable, "-m", "upgrade_manager", "status"]
CHECK = [sys.executable, "-m", "upgrade_manager", "check", "-o", "json"]
READ_PLANS = {"apiGroups": ["management.harvesterhci.io"], "resources": ["upgradeplans"], "verbs": ["list"]}
READ_EVENTS = {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}

pytestmark = [pytest.mark.real_loop]


async def run(*program: str, kubeconfig: Path, path: str = "") -> ProcessResult:
    environment = {"PATH": f"{path}:{os.environ['PATH']}", "HOME": str(kubeconfig.parent), "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *program,
        env=environment | {"KUBECONFIG": str(kubeconfig)},
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
        return "demo  Running" in result.out and result.code == 0 and ("not shown" in result.err) is not may_read_events

    may_read_events = False
    await grant(cluster.wire, "bob", READ_PLANS)
    await eventually(is_shown, seconds=30)
    may_read_events = True
    await grant(cluster.wire, "bob", READ_EVENTS, name="events", namespace="default")
    await eventually(is_shown, seconds=30)


NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}


@pytest.mark.rule("report: the viewer role suffices; what it may not read is named in the page")
@pytest.mark.servers
async def test_viewer_may_write_a_report(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.plan(status={"currentPhase": "NodeUpgrading"})
    config = await kubeconfig_of(cluster, tmp_path)
    roles = yaml.safe_load_all(ROLES.read_text())
    (viewer,) = [role for role in roles if role["metadata"]["name"].endswith("-viewer")]
    command = [sys.executable, "-m", "upgrade_manager", "report", "--context=bob", "-o", "-"]
    refused = await run(*command, kubeconfig=config)
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)

    async def is_written() -> bool:
        written = await run(*command, kubeconfig=config)
        named = [what in written.out and what in written.err for what in ("Events and the", "Versions of nodes")]
        return written.code == 0 and "Running</span>" in written.out and named == [not may_read_others] * 2

    may_read_others = False
    await grant(cluster.wire, "bob", *viewer["rules"])
    await eventually(is_written, seconds=30)
    may_read_others = True
    await grant(cluster.wire, "bob", NODES, name="nodes")
    await grant(cluster.wire, "bob", READ_EVENTS, name="events", namespace="default")
    await eventually(is_written, seconds=30)


#: A busy machine needs more than the seconds for which a user waits.
LONG_TIMEOUT = "from upgrade_manager.cli import completion; completion.TIMEOUT = 30"


@pytest.mark.full
async def test_distribution_installs_a_plugin_that_kubectl_completes(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.plan()
    for name in ("kubectl-upgradeplan", "kubectl_complete-upgradeplan"):
        install(name, tmp_path, before=LONG_TIMEOUT)
    admin = await kubeconfig_of(cluster, tmp_path)
    kubectl = partial(run, str(installed()), kubeconfig=admin, path=str(tmp_path))
    result = await kubectl("upgradeplan", "status", "demo")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("UpgradePlan  demo  Pending\n")
    for words, found in ((["rep"], ["report"]), (["status", ""], ["demo"]), (["status", "--context", "b"], ["bob"])):
        done = await kubectl("__complete", "upgradeplan", *words)
        assert (done.code, done.lines) == (0, [*found, ":4"])


@pytest.mark.assets
async def test_check_reviews_rights_on_a_real_server(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.wire.post("/api/v1/namespaces", {"metadata": {"name": "harvester-system"}})
    for name in ("cattle-system", "fleet-local", "longhorn-system"):
        await cluster.wire.post("/api/v1/namespaces", {"metadata": {"name": name}})
    await cluster.succeed("apply", "-k", str(ROOT / "deploy/rbac"))
    rows: dict[str, str] = {}

    async def are_granted() -> bool:
        result = await run(*CHECK, kubeconfig=await kubeconfig_of(cluster, tmp_path))
        rows.update({one["name"]: one["outcome"] for one in json.loads(result.out)["checks"]})
        return rows["manager's rights"] == "passed"

    await eventually(are_granted, seconds=30)
    assert (rows["CustomResourceDefinition"], rows["your rights"], rows["manager"]) == ("passed", "passed", "failed")
    bob = await run(*CHECK, kubeconfig=await kubeconfig_of(cluster, tmp_path, context="bob"))
    found = {one["name"]: one["outcome"] for one in json.loads(bob.out)["checks"]}
    assert (found["your rights"], found["manager's rights"], found["manager"]) == ("failed", "skipped", "skipped")
