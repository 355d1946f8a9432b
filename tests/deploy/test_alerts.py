"""The alerts: their runbooks, and promtool's tests of when they fire."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs.kustomize import DEPLOY
from tests.support.programs.prometheus import program
from upgrade_manager.api.keys import LEASE

RULE = yaml.safe_load((DEPLOY / "prometheus/prometheus-rule.yaml").read_text())
ALERTS: dict[str, Any] = {rule["alert"]: rule for group in RULE["spec"]["groups"] for rule in group["rules"]}
CASES = Path(__file__).with_name("alerts.yaml")
RUNBOOKS = DEPLOY.parent / "docs/runbooks"


@pytest.mark.rule("metrics: each alert has a runbook")
def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == {*ALERTS}
    documented = re.findall(r"^\| \[(\w+)\].* \| (\w+) \|", (RUNBOOKS.parent / "metrics.md").read_text(), re.MULTILINE)
    assert documented == [(name, rule["labels"]["severity"]) for name, rule in ALERTS.items()]
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"].endswith(f"/docs/runbooks/{name}.md")
        assert rule["labels"]["severity"] in {"critical", "warning"}
        headings = [line for line in (RUNBOOKS / f"{name}.md").read_text().splitlines() if line.startswith("#")]
        assert headings == [f"# {name}", "## Meaning", "## Impact", "## Diagnosis", "## Mitigation"]


def test_rules_select_the_lease_and_the_webhook() -> None:
    webhook = list(yaml.safe_load_all((DEPLOY / "webhook/webhook.yaml").read_text()))[1]["webhooks"][0]["name"]
    assert f'name="{LEASE}"' in ALERTS["ManagerDown"]["expr"]
    assert f'name="{webhook}"' in ALERTS["WebhookDown"]["expr"]


def test_each_alert_has_cases_in_which_it_fires_and_not() -> None:
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    outcomes = {(case["alertname"], bool(case["exp_alerts"])) for case in cases}
    assert outcomes == {(name, fires) for name in ALERTS for fires in (True, False)}


def promtool(folder: Path, *arguments: str, change: Callable[[str], str] = str) -> subprocess.CompletedProcess[str]:
    """Run promtool beside the rules and the cases."""
    (folder / "rules.yaml").write_text(change(yaml.safe_dump(RULE["spec"])))
    (folder / "alerts.yaml").write_text(CASES.read_text())
    return subprocess.run([program("promtool"), *arguments], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603  # promtool


@pytest.mark.rule("metrics: each alert fires in its case, and not in others")
@pytest.mark.assets
def test_alerts_fire_in_their_cases(tmp_path: Path) -> None:
    checked = promtool(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
    assert (checked.returncode, checked.stderr) == (0, "")
    tested = promtool(tmp_path, "test", "rules", "alerts.yaml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.assets
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("for: 5m", "for: 1m", id="a shorter time"),
        pytest.param("for: 15m", "for: 25m", id="a longer time"),
        pytest.param('type="Degraded"', 'type="Progressing"', id="another condition"),
        pytest.param("or max(leader_election_master_status", "and max(leader_election_master_status", id="no leader"),
    ],
)
def test_cases_fail_for_changed_rules(tmp_path: Path, old: str, new: str) -> None:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    assert promtool(tmp_path, "test", "rules", "alerts.yaml", change=change).returncode == 1
