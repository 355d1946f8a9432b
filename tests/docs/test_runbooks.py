"""The commands in the runbooks, the README and a condition's message, against the Deployment and the probes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from upgrade_manager.pipeline.reconciler import LOGS

ROOT = Path(__file__).parents[2]
RUNBOOKS = sorted((ROOT / "docs/runbooks").glob("*.md"))
MANAGER_DOWN = (ROOT / "docs/runbooks/ManagerDown.md").read_text()
WIRING = "".join(path.read_text() for path in sorted((ROOT / "upgrade_manager/cli").glob("*.py")))
#: Of all replicas, by name, and in full: by default, kubectl prints the last ten lines of each.
COMMAND = "kubectl -n harvester-system logs -l app.kubernetes.io/name=harvester-upgrade-manager --prefix --tail=-1"


@pytest.mark.parametrize("text", [*(path.read_text() for path in [*RUNBOOKS, ROOT / "README.md"]), LOGS])
def test_every_command_prints_the_whole_log_of_all_replicas(text: str) -> None:
    commands = re.findall(r"kubectl [^`|)\n]*\blogs\b[^`|)\n]*", text)
    of_manager = [command.strip() for command in commands if "harvester-upgrade-manager" in command]
    assert of_manager == [COMMAND] * len(of_manager)


def test_messages_command_selects_the_pods() -> None:
    assert LOGS.removeprefix("Run ") == COMMAND
    deployment = yaml.safe_load((ROOT / "deploy/manager/deployment.yaml").read_text())
    assert deployment["metadata"]["namespace"] == "harvester-system"
    (label,) = deployment["spec"]["template"]["metadata"]["labels"].items()
    assert "=".join(label) in COMMAND


@pytest.mark.parametrize("probe", ["healthz", "readyz"])
def test_runbook_names_every_check(probe: str) -> None:
    """A probe only has the results of its checks; the path of a check has the reason."""
    assert set(re.findall(rf"/{probe}/([a-z-]+)", MANAGER_DOWN)) == set(re.findall(rf'{probe}\.add\("(.+?)"', WIRING))
