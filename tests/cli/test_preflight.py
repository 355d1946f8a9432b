"""The command `upgrade-manager preflight`, as a process with a kubeconfig and in this one."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from hack import scenario as scenarios
from hack.cluster.options import Options
from hack.cluster.program import cluster
from hack.simulation import Simulation
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.cli.preflight import read_plan
from upgrade_manager.cli.session import CommandError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from webhook.catalogue import CHECKS
from webhook.preflight import check

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PLAN = """\
apiVersion: management.harvesterhci.io/v1beta1
kind: UpgradePlan
metadata: {name: demo}
spec: {version: v1.8.0}
"""
TOOLKIT_IMAGE = (
    "rancher/harvester-upgrade-toolkit:v1.8.0 (kind harvester), not pinned: a push to the registry can move the tag."
)
NEED_A_PLAN = {"version", "image", "pause list", "toolkit image"}


async def command(*arguments: str, kubeconfig: Path, given: str = "") -> ProcessResult:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "upgrade_manager", "preflight", f"--kubeconfig={kubeconfig}", *arguments),
        env={"PATH": os.environ["PATH"], "HOME": str(kubeconfig.parent), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await process.communicate(given.encode())
    return ProcessResult(process.returncode or 0, out.decode(), err.decode())


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Path]:
    """Serve a simulated cluster over HTTPS; yield its kubeconfig."""
    options = Options(
        api="embedded",
        scenario="three-nodes",
        kubeconfig=folder / "kubeconfig",
        scale=1.0,
        seed=0,
        port=0,
        install_crds=True,
        services={},
    )
    async with cluster(options, scenarios.load("three-nodes")):
        yield options.kubeconfig


@pytest.mark.rule("admission: preflight runs the same checks with a kubeconfig, and reports failures by its status")
@pytest.mark.real_loop
async def test_results_are_printed_with_remedies(tmp_path: Path) -> None:
    async with served(tmp_path) as kubeconfig:
        passed = await command("-f", "-", kubeconfig=kubeconfig, given=PLAN)
        assert (passed.code, passed.err) == (0, "")
        lines = passed.out.splitlines()
        assert lines[0].split() == ["CHECK", "RESULT", "DETAILS"]
        assert lines[1].split() == ["version", "passed"]
        assert lines[-2:] == [f"Toolkit image: {TOOLKIT_IMAGE}", "No check failed."]

        file = tmp_path / "plan.yaml"
        file.write_text(PLAN.replace("v1.8.0", "v9"))
        failed = await command("-f", str(file), kubeconfig=kubeconfig)
        assert failed.code == 1
        assert "Version harvester-system/v9 does not exist" in failed.out
        assert failed.out.endswith(f"1 of {len(CHECKS)} checks failed.\n")

        document = json.loads((await command("-o", "json", kubeconfig=kubeconfig)).out)
        assert {one["name"] for one in document["checks"] if one["outcome"] == "skipped"} == NEED_A_PLAN
        assert (document["passed"], document["toolkitImage"]) == (True, "")

        file.write_text(PLAN.replace("version: v1.8.0", "image: harvester-v1.8.0"))
        guessed = await command("-f", str(file), "--toolkit-image=me/toolkit", kubeconfig=kubeconfig)
        assert "The toolkit image's tag 0.1.0 is a guess" in guessed.out
        assert "Toolkit image: me/toolkit:0.1.0 (kind harvester)" in guessed.out
        refused = await command("-f", str(file), "--toolkit-image=me/toolkit:v1", kubeconfig=kubeconfig)
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)


@pytest.mark.real_loop
async def test_plan_that_the_webhook_skips_is_checked_all_the_same(tmp_path: Path) -> None:
    annotated = PLAN.replace("name: demo", 'name: demo, annotations: {management.harvesterhci.io/skip-webhook: "true"}')
    async with served(tmp_path) as kubeconfig:
        result = await command("-f", "-", kubeconfig=kubeconfig, given=annotated.replace("v1.8.0", "v9"))
        assert result.code == 1
        assert result.out.splitlines()[-1].startswith("The webhook skips all checks of this plan")
        document = json.loads((await command("-f", "-", "-ojson", kubeconfig=kubeconfig, given=annotated)).out)
        assert (document["plan"], document["skippedByWebhook"]) == ("demo", True)


@pytest.mark.real_loop
async def test_missing_access_gives_status_1_and_one_line(tmp_path: Path) -> None:
    missing = await command(kubeconfig=tmp_path / "missing")
    assert (missing.code, missing.out, missing.err.count("\n")) == (1, "", 1)
    async with served(tmp_path) as kubeconfig:
        text = kubeconfig.read_text()
        for port in ("1", "99999"):
            kubeconfig.write_text(re.sub(r"https://127.0.0.1:\d+", f"https://127.0.0.1:{port}", text))
            refused = await command(kubeconfig=kubeconfig)
            assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
            assert refused.err.startswith("upgrade-manager: ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "0 documents. Use a file with one UpgradePlan", id="empty"),
        pytest.param(PLAN + "---\n" + PLAN, "2 documents", id="two plans"),
        pytest.param("kind: Pod\napiVersion: v1\n", "not an UpgradePlan of management", id="another kind"),
        pytest.param(PLAN.replace("v1beta1", "v2"), "not an UpgradePlan of management", id="another version"),
        pytest.param("- a\n", "not an UpgradePlan of management", id="a list"),
        pytest.param("{", "not YAML", id="not YAML"),
        pytest.param("a: 2026-99-99", "not YAML", id="an impossible date"),
        pytest.param("[" * 5000, "not YAML", id="deep"),
    ],
)
def test_file_without_one_plan_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(CommandError) as caught:
        read_plan(str(file))
    assert str(caught.value).startswith(f"{file}: {reason}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"], ids=["missing", "not UTF-8"])
def test_unreadable_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "plan.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandError, match=f"^{file}: "):
        read_plan(str(file))


def test_file_ends_and_empty_documents_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(f"---\n{PLAN}---\n")
    assert read_plan(str(file))["spec"] == {"version": "v1.8.0"}


async def test_finding_of_each_node_is_a_detail() -> None:
    async with Simulation(actors=False) as simulation:
        client = simulation.client()
        for name in ("node-0", "node-1"):
            await client.patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))
        rows = {row.check: row for row in await check({}, client, TOOLKIT)}
    assert [finding.message for finding in rows["nodes"].findings] == [
        "Node node-0 is cordoned. Run kubectl uncordon node-0",
        "Node node-1 is cordoned. Run kubectl uncordon node-1",
    ]
    assert {name for name, row in rows.items() if row.outcome == "skipped"} == NEED_A_PLAN


@pytest.mark.parametrize("arguments", [["-o", "yaml"], ["--unknown"], ["-f"]], ids=" ".join)
async def test_usage_error_gives_status_2(tmp_path: Path, arguments: list[str]) -> None:
    result = await asyncio.to_thread(_run, tmp_path, arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def _run(folder: Path, arguments: list[str]) -> ProcessResult:
    return asyncio.run(command(*arguments, kubeconfig=folder / "kubeconfig"))
