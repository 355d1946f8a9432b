"""The tables, character by character."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.spinner import Spinner

from tests.support.managers.displayed import NOW, START, plan, running_view, times, without
from upgrade_manager.api.phases import PHASES, PhaseName
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.display.model import NodeRow, View
from upgrade_manager.display.screen import Terminal
from upgrade_manager.display.tables import bar, display, select, state_style
from upgrade_manager.display.unbroken import Joined
from upgrade_manager.display.view import build

FOLDER = Path(__file__).parent
NODES = [
    NodeRow(name=f"node-{number}", state=state, since=None, reason="", message="")
    for number, state in enumerate(["PostDrained", "PreDraining", "ImagePreloaded", "PostDrained"])
]


def draw(view: View, *, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(Joined(display(view)), crop=False)
    return "".join(f"{line.rstrip()}\n" for line in console.export_text().splitlines())


@pytest.mark.parametrize("width", [80, 200])
def test_running_upgrade(width: int) -> None:
    """With GOLDEN=write it writes the listings."""
    path, drawn = FOLDER / f"running-{width}.golden", draw(running_view(), width=width)
    if os.environ.get("GOLDEN") == "write":
        path.write_text(drawn)
    assert drawn == path.read_text()


PENDING = """\
UpgradePlan  demo  Pending
upgrade      Harvester → v1.8.0
progress     ────────────────────────────── 0 %
now          The manager has not accepted the plan yet. Check its Pods and logs if this lasts

   PHASE             DURATION
"""


def test_plan_without_status() -> None:
    assert draw(build(plan(), [], now=NOW), width=100) == PENDING + "".join(f"·  {phase}\n" for phase in PHASES)


def test_pending_plan_shows_the_plan_that_it_waits_for() -> None:
    waits = {"type": "Available", "status": "False", "reason": "Waiting", "message": "Waiting for UpgradePlan a"}
    drawn = draw(build(plan(conditions=[waits]), [], now=NOW), width=100)
    assert "now          Waiting for UpgradePlan a\n" in drawn
    assert "not accepted" not in drawn


def test_phase_that_an_earlier_manager_lacked_is_skipped() -> None:
    text = draw(build(without(PhaseName.REPO_CREATE), [], now=NOW), width=100)
    assert "\n-  RepoCreate           skipped\n" in text


FAILED = """\
UpgradePlan  demo  Failed, deleting, cleaning up
upgrade      Harvester → v1.8.0
started      2030-01-01 12:00:00 UTC, 3 min 0 s elapsed
ended        2030-01-01 12:03:00 UTC
progress     ────────────────────────────── 1 %
cause        the import failed
"""


def test_failed_plan_that_is_being_deleted() -> None:
    phases = times("Initializing", "Initialized", "ISODownloading", "Failed", step=60)
    conditions = [{"type": "Progressing", "status": "False", "message": "the import failed"}]
    status = {"currentPhase": "Failed", "phaseTransitionTimestamps": phases, "conditions": conditions}
    failed = plan(**status, cleanupPending=True, estimatedCompletion="2030-01-01T13:00:00Z")
    failed["metadata"]["deletionTimestamp"] = "2030-01-01T12:04:00Z"
    text = draw(build(failed, [], now=NOW), width=100)
    assert text.startswith(FAILED)
    assert "✗  ISODownload       1 min 0 s\n" in text


@pytest.mark.parametrize(("ratio", "full", "percent"), [(0.0, 0, 0), (0.5, 15, 50), (0.999, 29, 99), (1.0, 30, 100)])
def test_bar_is_full_only_at_the_end(ratio: float, full: int, percent: int) -> None:
    assert bar(ratio) == "━" * full + "─" * (30 - full) + f" {percent} %"


def test_expected_end_that_has_passed_is_overdue() -> None:
    late = replace(running_view(), estimated_completion=START)
    assert "expected end  2030-01-01 12:00:00 UTC, 1 h 12 min overdue\n" in draw(late, width=100)


def test_nodes_in_progress_have_the_first_rows() -> None:
    rows, others = select(NODES, 2)
    assert ([row.name for row in rows], others) == (["node-1", "node-0"], "1 ImagePreloaded, 1 PostDrained")
    assert select(NODES, None) == (NODES, "")


STYLES = {
    "": ["ImagePreloaded"],
    "cyan": ["ImagePreloading", "PreDraining", "PreDrained", "WaitingReboot", "ImageCleaning", "NotKnownYet"],
    "yellow": ["UpgradePaused"],
    "green": ["PostDrained", "SingleNodeUpgraded", "ImageCleaned"],
    "red": ["PreDrainFailed", "ImageCleanFailed"],
}


@pytest.mark.parametrize(("style", "states"), STYLES.items(), ids=STYLES)
def test_node_has_the_colour_of_its_state(style: str, states: list[str]) -> None:
    assert {state: state_style(state) for state in states} == dict.fromkeys(states, style)


def test_texts_are_no_markup() -> None:
    view = replace(running_view(), waiting="[bold]x[/bold] :smile: [link=y]")
    assert "[bold]x[/bold] :smile: [link=y]" in draw(view, width=100)


def test_spinner_marks_the_current_phase() -> None:
    console = Console(file=io.StringIO(), width=80, record=True, get_time=lambda: 0.0)
    console.print(display(running_view(), spinner=Spinner("dots"), notice="Connection lost"))
    text = console.export_text()
    assert "⠋  NodeUpgrade" in text
    assert text.index("InternalError") < text.index("Connection lost") < text.index("BLOCKERS") < text.index("PHASE")


BLOCKER = replace(
    running_view().blockers[0],
    kind="Job",
    namespace="default",
    name="j",
    reason="JobSuspended",
    message="Job default/j: it is suspended",
)
#: By the manager's wait: the text beside the blocker.
WAITS = {
    "Job default/j: it is suspended. Resume it: kubectl patch job j": "",
    "node-0: waiting for Job default/j: it is suspended (0 of 3 nodes done)": "0 of 3 nodes done",
    "node-0: it is suspended. Resume it (1 of 3 nodes done)": "1 of 3 nodes done",
    "waiting for Rancher; node-1: it is suspended (2 of 3 nodes done)": "waiting for Rancher (2 of 3 nodes done)",
    "waiting for Rancher (0 of 3 nodes done)": "waiting for Rancher (0 of 3 nodes done)",
    "Images loaded on 0 of 3 nodes": "Images loaded on 0 of 3 nodes",
}


@pytest.mark.rule("status: what a blocker says stands once, and with all of its remedies or their number")
@pytest.mark.parametrize(("waiting", "shown"), WAITS.items())
def test_wait_is_shown_without_the_blocker(waiting: str, shown: str) -> None:
    node = NodeRow(name="node-0", state="PreDraining", since=NOW, reason=BLOCKER.reason, message=BLOCKER.message)
    view = replace(running_view(), waiting=waiting, blockers=(BLOCKER,), nodes=(node,), last_error="", warnings=())
    text = draw(view, width=200)
    assert ("now " in text) == bool(shown)
    assert not shown or f"now           {shown}\n" in text
    assert text.count("it is suspended") == 1
    assert "JobSuspended\n" in text


@pytest.mark.rule("status: what a blocker says stands once, and with all of its remedies or their number")
def test_blocker_with_a_count_stands_once() -> None:
    blocker = replace(BLOCKER, message="Cluster a/b: Rancher has not started (0 of 3 nodes done)")
    waiting = "waiting for Rancher (0 of 3 nodes done); Cluster a/b: Rancher has not started"
    text = draw(replace(running_view(), waiting=waiting, blockers=(blocker,), last_error="", warnings=()), width=200)
    assert "now           waiting for Rancher (0 of 3 nodes done)\n" in text


@pytest.mark.rule("status: what a blocker says stands once, and with all of its remedies or their number")
def test_warning_of_an_earlier_message_of_a_blocker_is_left_out() -> None:
    (warning,) = running_view().warnings
    about = replace(warning, reason=BLOCKER.reason, message="Job default/j: it waits. Wait")
    other = replace(about, message="Job default/k: it waits. Wait")
    text = draw(replace(running_view(), blockers=(BLOCKER,), warnings=(about, other)), width=200)
    assert "Job default/k: it waits" in text
    assert "Job default/j: it waits" not in text


def test_warning_of_a_next_step_is_left_out() -> None:
    (warning,) = running_view().warnings
    step = Remedy("PodDisruptionBudget default/shop: give it back", command="kubectl patch pdb shop")
    about = replace(warning, reason="StillChanged", message=str(step))
    other = replace(about, message="PodDisruptionBudget default/other: give it back")
    text = draw(replace(running_view(), next_steps=(step,), warnings=(about, other)), width=200)
    assert text.count("default/shop: give it back") == 1
    assert "default/other: give it back" in text


@pytest.mark.rule("status: what a blocker says stands once, and with all of its remedies or their number")
def test_remedies_that_do_not_fit_are_counted() -> None:
    remedies = tuple(Remedy(f"Start {number}", command=f"start {number}") for number in range(20))
    view = replace(running_view(), blockers=(replace(BLOCKER, remedies=remedies), BLOCKER))
    output = io.StringIO()
    with Terminal(Console(file=output, force_terminal=True, width=80, height=24)) as screen:
        screen.show(view)
    last = output.getvalue().rpartition("UpgradePlan")[2]
    assert "start 6" in last
    assert "# Start 8" not in last
    assert "12 of this one, 1 JobSuspended; all remedies:" in last
    assert "upgrade-manager remedies demo" in last
