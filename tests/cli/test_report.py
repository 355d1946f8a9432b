"""The command `upgrade-manager report`, as a process with a kubeconfig and in this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cluster.served import manager, result, served
from tests.support.managers.displayed import MANIFEST
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.cli.report import write
from upgrade_manager.cli.session import CommandError
from upgrade_manager.kube.resources import UPGRADE_PLANS


async def command(kubeconfig: Path, *arguments: str) -> ProcessResult:
    return await result(await manager("report", f"--kubeconfig={kubeconfig}", *arguments, home=kubeconfig.parent))


@pytest.mark.full
@pytest.mark.rule("report: a missing plan, missing access or an unwritable file is one line, with exit status 1")
@pytest.mark.real_loop
async def test_page_is_written_to_a_file_or_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    async with served(tmp_path) as cluster:
        assert (await command(cluster.kubeconfig, "-o", str(file))).line.endswith(": no UpgradePlan found")
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        await cluster.set(currentPhase="Initializing", nodeUpgradeStatuses={"node-0": {"state": "ImagePreloaded"}})
        missing = await command(cluster.kubeconfig, "nope", "-o", "-")
        assert missing.code == 1
        assert missing.line.endswith("UpgradePlan nope not found. Run kubectl get upgradeplans")
        written = await command(cluster.kubeconfig, "demo", "-o", str(file))
        assert (written.code, written.out, written.err) == (0, "", "")
        shown = await command(cluster.kubeconfig, "-o", "-")
    assert "<title>demo: Running" in file.read_text()
    assert "Harvester v1.7.1</td>" in file.read_text()
    assert shown.out.rpartition("Created at")[0] == file.read_text().rpartition("Created at")[0]


@pytest.mark.parametrize(
    ("place", "reason"),
    [("missing/x.html", "No such file or directory"), ("", "Is a directory"), ("a\0b", "embedded null byte")],
)
def test_file_that_cannot_be_written_is_named(tmp_path: Path, place: str, reason: str) -> None:
    with pytest.raises(CommandError, match=f"cannot be written: {reason}. Use -o"):
        write(f"{tmp_path}/{place}", "x")
