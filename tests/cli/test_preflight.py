"""The command `upgrade-manager preflight`, as a process with a kubeconfig and in this one."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.support.cluster.served import manager, result, served
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.api.keys import ANNOTATION_SKIP_WEBHOOK
from upgrade_manager.cli.preflight import read_plan
from upgrade_manager.cli.session import CommandError

PLAN = """\
apiVersion: management.harvesterhci.io/v1beta1
kind: UpgradePlan
metadata: {name: demo}
spec: {version: v1.8.0}
"""
SKIPPED = PLAN.replace("name: demo", f'name: demo, annotations: {{{ANNOTATION_SKIP_WEBHOOK}: "true"}}')
TOOLKIT_IMAGE = (
    "rancher/harvester-upgrade-toolkit:v1.8.0 (kind harvester), not pinned: a push to the registry can move the tag."
)
NEED_A_PLAN = {
    *("creation", "release", "ISO", "version", "image", "pause list", "pause after", "annotations", "toolkit image"),
    "VM migration",
}


async def command(*arguments: str, kubeconfig: Path, given: str = "") -> ProcessResult:
    process = await manager("preflight", f"--kubeconfig={kubeconfig}", *arguments, home=kubeconfig.parent)
    return await result(process, given=given)


def kubeconfig_server(path: Path) -> str:
    [cluster] = yaml.safe_load(path.read_text())["clusters"]
    return str(cluster["cluster"]["server"])


@pytest.mark.full
@pytest.mark.rule("admission: preflight runs the same checks with a kubeconfig, and reports failures by its status")
@pytest.mark.real_loop
async def test_results_are_printed_with_remedies(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        run = partial(command, kubeconfig=cluster.kubeconfig)
        passed = await run("-f", "-", given=PLAN)
        assert (passed.code, passed.err) == (0, "")
        lines = passed.out.splitlines()
        server = kubeconfig_server(cluster.kubeconfig)
        assert lines[0] == f"Context simulated-harvester, server {server}, runs v1.7.1, target v1.8.0"
        assert lines[2].split() == ["CHECK", "RESULT", "DETAILS"]
        assert lines[3].split() == ["Harvester", "passed"]
        assert "the file has 1 KiB, and ISOs of Harvester have several GiB" in passed.out
        assert lines[-3] == f"Toolkit image: {TOOLKIT_IMAGE}"
        assert lines[-2].startswith("Stuck VMs: Stop: ")
        assert lines[-1] == "No check failed."

        document = json.loads((await run("-o", "json")).out)
        assert {one["name"] for one in document["checks"] if one["outcome"] == "skipped"} == NEED_A_PLAN
        assert (document["passed"], document["toolkitImage"]) == (True, "")
        assert (document["context"], document["server"]) == ("simulated-harvester", server)
        assert (document["runningVersion"], document["target"]) == ("v1.7.1", "")

        file = tmp_path / "plan.yaml"
        file.write_text(PLAN.replace("version: v1.8.0", "image: harvester-v1.8.0"))
        guessed = await run("-f", str(file), "--toolkit-image=me/toolkit")
        assert "The toolkit image's tag 0.1.0 is a guess" in guessed.out
        assert "Toolkit image: me/toolkit:0.1.0 (kind harvester)" in guessed.out

        # The plan that the webhook skips is checked all the same.
        failed = await run("-f", "-", given=SKIPPED.replace("v1.8.0", "v9"))
        assert failed.code == 1
        assert "Version harvester-system/v9 does not exist" in failed.out
        document = json.loads((await run("-f", "-", "-ojson", given=SKIPPED)).out)
        *_, count, last = failed.out.splitlines()
        assert count == f"1 of {len(document['checks'])} checks failed, 2 skipped."
        for name in ("release", "ISO"):
            (line,) = [line for line in failed.out.splitlines() if line.startswith(f"{name} ")]
            assert line.split(maxsplit=2)[1:] == ["skipped", "its Version does not exist"]
        assert last.startswith("The webhook skips all checks of this plan")
        document = json.loads((await run("-f", "-", "-ojson", given=SKIPPED)).out)
        assert (document["plan"], document["skippedByWebhook"]) == ("demo", True)


@pytest.mark.full
@pytest.mark.rule("admission: preflight lists the releases that the cluster knows, with what each needs")
@pytest.mark.real_loop
async def test_releases_are_printed(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        run = partial(command, kubeconfig=cluster.kubeconfig)
        listed = await run("--versions", "--skip-iso")
        assert (listed.code, listed.err) == (0, "")
        assert listed.out.splitlines()[2].split() == ["VERSION", "MINIMUM", "STEPS", "ISO", "NEEDS"]
        document = json.loads((await run("--versions", "-ojson")).out)
        assert [one["name"] for one in document["versions"]] == ["v1.8.0"]
        both = await run("--versions", "-f", "-")
        assert (both.code, "not allowed with argument" in both.err) == (2, True)


@pytest.mark.full
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
        pytest.param("[" * 1500, "not YAML", id="deep"),
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
