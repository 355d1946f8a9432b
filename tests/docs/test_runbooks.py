"""The commands in the runbooks, the README and a condition's message, against the Deployments and the probes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from upgrade_manager.pipeline.errors import LOGS

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs/runbooks").glob("*.md"))
MANAGER_DOWN = (ROOT / "docs/runbooks/ManagerDown.md").read_text()
WEBHOOK_DOWN = (ROOT / "docs/runbooks/WebhookDown.md").read_text()
TEXTS = [*(path.read_text() for path in (*DOCS, ROOT / "README.md", ROOT / "docs/install.md")), LOGS]
WIRED = [*sorted((ROOT / "upgrade_manager/cli").glob("*.py")), ROOT / "webhook/wiring.py"]
WIRING = "".join(path.read_text() for path in WIRED)
#: Of all replicas, by name, and in full: by default, kubectl prints the last ten lines of each.
COMMAND = "kubectl -n harvester-system logs -l app.kubernetes.io/name=harvester-upgrade-manager --prefix --tail=-1"
OF_WEBHOOK = "kubectl -n harvester-system logs -l management.harvesterhci.io/serves=webhook --prefix --tail=-1"


@pytest.mark.parametrize("text", TEXTS)
def test_every_command_prints_the_whole_log_of_all_replicas(text: str) -> None:
    commands = re.findall(r"kubectl [^`|)\n]*\blogs\b[^`|)\n]*", text)
    found = {command.strip() for command in commands if re.search("harvester-upgrade-manager|serves=", command)}
    assert found <= {COMMAND, OF_WEBHOOK}


def test_messages_command_is_that_of_the_runbooks() -> None:
    assert LOGS.removeprefix("Run ") == COMMAND


@pytest.mark.parametrize(("folder", "command"), [("manager", COMMAND), ("webhook", OF_WEBHOOK)])
def test_command_selects_the_pods_of_one_deployment(folder: str, command: str) -> None:
    pods = {
        one: yaml.safe_load((ROOT / f"deploy/{one}/deployment.yaml").read_text())["spec"]["template"]["metadata"]
        for one in ("manager", "webhook")
    }
    (selector,) = re.findall(r" -l (\S+)", command)
    selected = {one for one in pods if selector in {"=".join(label) for label in pods[one]["labels"].items()}}
    assert selected == {folder}


@pytest.mark.parametrize("probe", ["healthz", "readyz"])
def test_runbook_names_every_check(probe: str) -> None:
    """A probe only has the results of its checks; the path of a check has the reason."""
    assert set(re.findall(rf"/{probe}/([a-z-]+)", MANAGER_DOWN + WEBHOOK_DOWN)) == set(
        re.findall(rf'{probe}\.add\("(.+?)"', WIRING)
    )
