"""The display on a terminal, character by character."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console
from rich.spinner import Spinner

from hack.demo.screen import Terminal
from hack.demo.terminal import display
from hack.demo.view import EventRow, Mark, NodeRow, PhaseRow, View

RUNNING = View(
    plan="demo",
    route="Harvester v1.7.1 → v1.8.0",
    elapsed=12.4,
    phases=(
        PhaseRow(name="Initialize", mark=Mark.DONE, seconds=1.0),
        PhaseRow(name="ISODownload", mark=Mark.ACTIVE, seconds=11.0),
        PhaseRow(name="RepoCreate", mark=Mark.PENDING, seconds=None),
    ),
    nodes=(
        NodeRow(name="node-0", state="PostDrained", message=""),
        NodeRow(name="node-1", state="WaitingReboot", message="expects Harvester v1.8.0"),
    ),
    waiting="VirtualMachineImage harvester-system/demo-iso is being imported",
    last_error="",
    events=(
        EventRow(
            time="12:00:01", type="Normal", reason="PhaseCompleted", message="Completed phase Initialize", count=2
        ),
    ),
    outcome="",
    cause="",
)

EXPECTED = """\
UpgradePlan demo   Harvester v1.7.1 → v1.8.0   12 s

✓  Initialize    1 s
⠋  ISODownload  11 s
·  RepoCreate

  node-0  PostDrained
  node-1  WaitingReboot  expects Harvester v1.8.0

now        VirtualMachineImage harvester-system/demo-iso is being imported

  12:00:01  PhaseCompleted  Completed phase Initialize (x2)
"""


def draw(view: View) -> str:
    console = Console(file=io.StringIO(), width=100, record=True, get_time=lambda: 0.0)
    console.print(display(view, spinner=Spinner("dots")))
    return "".join(f"{line.rstrip()}\n" for line in console.export_text().splitlines())


def test_running_upgrade() -> None:
    assert draw(RUNNING) == EXPECTED


def test_terminal_keeps_the_last_view_and_does_not_fold() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, record=True)
    command = "kubectl --kubeconfig /tmp/a/rather/long/path/to/the/kubeconfig explain upgradeplans.spec"
    with Terminal(console) as screen:
        screen.say(command)
        for waiting in ("for one thing", "for another"):
            screen.show(replace(RUNNING, waiting=waiting, events=()))
    text = console.export_text()
    assert command in text
    assert text.rstrip().endswith("now        for another")
