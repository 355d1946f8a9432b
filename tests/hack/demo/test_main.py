"""The demo as a newcomer runs it: as a program, to its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(150)


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A demo whose temporary files are under our eyes."""
    return subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-m", "hack.demo", "--plain", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(demo: subprocess.Popen[str], text: str) -> None:
    assert demo.stdout is not None
    assert any(text in line for line in demo.stdout), f"the demo ended without saying {text!r}"


def left_running(folder: Path) -> str:
    """Processes that have to do with a demo in that folder."""
    processes = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout  # noqa: S607  # found on the PATH
    return "\n".join(line for line in processes.splitlines() if str(folder) in line)


@pytest.mark.parametrize(
    "arguments", [pytest.param((), id="from a Version"), pytest.param(("--image",), id="from an image")]
)
def test_an_upgrade_succeeds_and_leaves_nothing_behind(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    demo = start(tmp_path, "--instant", *arguments)
    output, _ = demo.communicate()
    assert demo.returncode == 0, output
    assert re.search(r"^Succeeded: Harvester v1\.7\.1 → v1\.8\.0 in \d+ s\.$", output, re.MULTILINE)
    assert len(re.findall(r"phase \w+: done", output)) == 8
    assert len(re.findall(r"^  kubectl --kubeconfig ", output, re.MULTILINE)) == 3
    assert "Warning" not in output
    assert (list(tmp_path.iterdir()), left_running(tmp_path)) == ([], "")


def test_a_failed_upgrade_says_why_and_shows_the_managers_log(tmp_path: Path) -> None:
    scenario = tmp_path / "broken.yaml"
    scenario.write_text("nodes: {count: 3, management: 3}\nfaults: [{work: manifests, message: no such chart}]\n")
    folder = tmp_path / "tmp"
    folder.mkdir()
    demo = start(folder, "--instant", "--scenario", str(scenario))
    output, _ = demo.communicate()
    assert demo.returncode == 1, output
    assert re.search(r"^Failed: .*no such chart", output, re.MULTILINE)
    assert "The last lines of the manager's log:" in output
    assert (list(folder.iterdir()), left_running(folder)) == ([], "")


def test_a_scenario_that_does_not_exist_is_the_clusters_word(tmp_path: Path) -> None:
    demo = start(tmp_path, "--scenario", "nodes-12345")
    output, _ = demo.communicate()
    assert demo.returncode == 1
    assert "The demo failed: the cluster ended with exit status" in output
    assert "nodes-12345" in output


def test_a_plan_that_the_schema_refuses_gets_the_servers_message(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "{apiVersion: management.harvesterhci.io/v1beta1, kind: UpgradePlan, metadata: {name: empty}, spec: {}}"
    )
    demo = start(tmp_path, "--instant", "--plan-file", str(plan))
    output, _ = demo.communicate()
    assert demo.returncode == 1
    assert "The demo failed: " in output
    assert "version" in output


@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
    ],
)
def test_a_signal_ends_it_and_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, status: int) -> None:
    demo = start(tmp_path)
    read_until(demo, "phase Initialize: started")
    demo.send_signal(number)
    demo.communicate()
    assert demo.returncode == status
    assert (list(tmp_path.iterdir()), left_running(tmp_path)) == ([], "")


def test_a_killed_manager_is_started_again_and_the_upgrade_succeeds(tmp_path: Path) -> None:
    demo = start(tmp_path, "--time-scale", "0.3")
    read_until(demo, "phase ISODownload: started")
    pid = re.search(r"^\s*(\d+) .*upgrade-manager run ", left_running(tmp_path), re.MULTILINE)
    assert pid is not None
    os.kill(int(pid[1]), signal.SIGKILL)
    output, _ = demo.communicate()
    assert demo.returncode == 0, output
    assert "the manager was killed; started again" in output
