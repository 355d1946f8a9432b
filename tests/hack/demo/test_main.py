"""The demo as a program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.kubectl import installed
from tests.support.programs.processes import started_with
from upgrade_manager.api.phases import PHASES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(150)


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a demo with its temporary files in a folder, and kill it at the end."""
    command = [sys.executable, "-m", "hack.demo", "--plain", *arguments]
    # The demo's manager ignores what the shell has set for others.
    environment = {**os.environ, "TMPDIR": str(folder), "ENABLE_WEBHOOKS": "false", "POD_NAMESPACE": "default"}
    with subprocess.Popen(  # noqa: S603  # our own program
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        try:
            yield demo
        finally:
            demo.kill()


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit status and the output."""
    with started(folder, *arguments) as demo:
        output, _ = demo.communicate()
        return demo.returncode, output


def read_until(demo: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert demo.stdout is not None
    found = next((found for line in demo.stdout if (found := re.search(pattern, line))), None)
    assert found is not None, f"the demo has not printed {pattern}"
    return found


def left_behind(folder: Path) -> list[str]:
    """Return files in the folder, and processes with its name in their command lines."""
    return [path.name for path in folder.iterdir()] + [f"process {pid}" for pid in started_with(str(folder))]


@pytest.mark.full
@pytest.mark.parametrize(
    "arguments",
    [pytest.param((), id="from a Version"), pytest.param(("--image",), id="from an image")],
)
def test_upgrade_succeeds_and_leaves_nothing_behind(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    status, output = run(tmp_path, "--instant", *arguments)
    assert status == 0, output
    assert re.search(r"^Succeeded: Harvester v1\.7\.1 → v1\.8\.0 in \d+ s, \d+ s here\.$", output, re.MULTILINE)
    assert len(re.findall(r"phase \w+: done", output)) == len(PHASES)
    assert len(re.findall(r"^  kubectl --kubeconfig ", output, re.MULTILINE)) == 3
    assert "Warning" not in output
    assert left_behind(tmp_path) == []


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("api", ["embedded", pytest.param("real", marks=pytest.mark.assets)])
def test_refused_plan_is_accepted_after_the_remedies(tmp_path: Path, api: str) -> None:
    breaks = "degraded-volume,cordoned-node,single-replica"
    status, output = run(tmp_path, "--instant", "--api", api, "--break", breaks)
    assert status == 0, output
    refused, accepted = output.split("The same plan is accepted.")
    assert (
        'The UpgradePlan "demo" is invalid: \n* spec: Node node-2 is cordoned. Uncordon it: kubectl uncordon node-2'
        in refused
    )
    assert len(re.findall(r"^\* spec: ", refused, re.MULTILINE)) == 3
    assert "phase Initialize" not in refused
    assert re.search(r"^kubectl uncordon node-2$", refused.partition("Mending:")[2], re.MULTILINE)
    assert re.search(r"^Succeeded: ", accepted, re.MULTILINE)
    assert left_behind(tmp_path) == []


@pytest.mark.full
def test_failed_upgrade_shows_the_cause_and_the_log(tmp_path: Path) -> None:
    scenario = tmp_path / "broken.yaml"
    scenario.write_text("nodes: {count: 3, management: 3}\nfaults: [{work: manifests, message: no such chart}]\n")
    folder = tmp_path / "tmp"
    folder.mkdir()
    status, output = run(folder, "--instant", "--scenario", str(scenario))
    assert status == 1, output
    assert re.search(r"^Failed: .*no such chart", output, re.MULTILINE)
    assert "The end of the manager's log:" in output
    assert left_behind(folder) == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "status"),
    [pytest.param(signal.SIGINT, 130, id="Ctrl-C"), pytest.param(signal.SIGTERM, 143, id="SIGTERM")],
)
def test_signal_ends_the_demo_and_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, status: int) -> None:
    with started(tmp_path) as demo:
        read_until(demo, "phase Initialize: started")
        demo.send_signal(number)
        demo.communicate()
        assert demo.returncode == status
    assert left_behind(tmp_path) == []


@pytest.mark.full
def test_kept_cluster_survives_the_deletion_of_the_plan(tmp_path: Path) -> None:
    with started(tmp_path, "--keep", "--time-scale", "3") as demo:
        kubeconfig = read_until(demo, r"^kubeconfig: (\S+)")[1]
        kubectl = [str(installed()), f"--kubeconfig={kubeconfig}"]
        read_until(demo, "phase ISODownload: started")
        allow = "management.harvesterhci.io/allow-deletion=true"
        for arguments in (["annotate", "up/demo", allow], ["delete", "up/demo"]):
            subprocess.run([*kubectl, *arguments], check=True, capture_output=True)  # noqa: S603
        read_until(demo, "^Deleted: ")
        read_until(demo, "keep running until Ctrl-C")
        nodes = subprocess.run([*kubectl, "get", "nodes"], check=True, capture_output=True, text=True)  # noqa: S603
        assert "node-2" in nodes.stdout
        demo.send_signal(signal.SIGINT)
        demo.communicate()
        assert demo.returncode == 130
    assert left_behind(tmp_path) == []


@pytest.mark.full
def test_upgrade_succeeds_with_a_killed_manager(tmp_path: Path) -> None:
    with started(tmp_path, "--time-scale", "0.1") as demo:
        pid = int(read_until(demo, r"kill -9 (\d+)")[1])
        read_until(demo, "phase ISODownload: started")
        os.kill(pid, signal.SIGKILL)
        output, _ = demo.communicate()
        assert demo.returncode == 0, output
    assert "the manager was killed; restarted" in output
