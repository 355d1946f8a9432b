"""The output of the screens for a sequence of views."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.support.managers.displayed import START, running_view
from upgrade_manager.display.screen import Documents, Lines, Report, Screen, Terminal

VIEW = running_view()
LATER = replace(VIEW, waiting="node-2: waiting for Rancher", elapsed_seconds=4400.0)


def show(screen: Screen) -> None:
    with screen:
        screen.show(VIEW)
        screen.notify("Connection lost")
        screen.show(replace(VIEW, elapsed_seconds=4330.0))
        screen.notify("")
        screen.show(LATER)


def terminal(*, width: int, height: int) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, record=True)


def last_display(console: Console) -> str:
    return console.export_text().rpartition("UpgradePlan")[2]


def test_terminal_keeps_the_last_view_and_does_not_fold() -> None:
    console = terminal(width=60, height=60)
    command = "kubectl --kubeconfig /tmp/a/rather/long/path/to/the/kubeconfig explain upgradeplans.spec"
    with Terminal(console) as screen:
        screen.show_message(command)
        for waiting in ("for one", "for another"):
            screen.show(replace(VIEW, waiting=waiting, blockers=(), warnings=()))
    text = console.export_text()
    assert command in text
    assert "now           for another" in text.rpartition("UpgradePlan")[2]


def test_terminal_shows_a_notice_until_it_ends_and_the_cursor() -> None:
    output = io.StringIO()
    screen = Terminal(Console(file=output, force_terminal=True, width=100, height=60))
    show(screen)
    text = output.getvalue()
    assert text.rpartition("UpgradePlan")[2].count("Connection lost") == 0
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


@pytest.mark.rule("status: on a low terminal blockers come before phases that are done")
@pytest.mark.parametrize(("height", "is_short"), [(24, True), (60, False)])
def test_low_terminal_shows_blockers_before_other_phases(height: int, *, is_short: bool) -> None:
    console = terminal(width=100, height=height)
    with Terminal(console) as screen:
        screen.show(VIEW)
    last = last_display(console)
    assert ("MetadataPopulate" in last) is not is_short
    assert "# Or allow one Pod to be down:" in last
    assert "NodeUpgrad" in last


NOTICE = "Connection to the API server lost at 13:10:00 UTC; retrying: connection to https://192.0.2.7:6443 refused"


@pytest.mark.rule("status: on a low terminal blockers come before phases that are done")
@pytest.mark.parametrize("notice", ["", NOTICE], ids=["connected", "connection lost"])
@pytest.mark.parametrize("count", [1, 2, 6])
def test_low_terminal_shows_the_notice_and_counts_blockers(count: int, notice: str) -> None:
    (blocker,) = VIEW.blockers
    console = terminal(width=80, height=24)
    with Terminal(console) as screen:
        screen.notify(notice)
        screen.show(replace(VIEW, blockers=(blocker,) * count))
    shown = [line.rstrip() for line in last_display(console).splitlines()]
    assert len(shown) <= console.height
    assert any(line.startswith("Connection to the API server lost") for line in shown) is bool(notice)
    assert "# Or allow one Pod to be down:" in shown
    assert (f"others  {count - 1} DrainFailing; all remedies:" in shown) is (count > 1)


@pytest.mark.parametrize(("height", "kept"), [(36, 5), (33, 2)])
def test_low_terminal_shows_the_last_warnings_and_counts_others(height: int, kept: int) -> None:
    warnings = tuple(replace(VIEW.warnings[0], message=f"attempt {number}", count=1) for number in range(5))
    console = terminal(width=80, height=height)
    with Terminal(console) as screen:
        screen.show(replace(VIEW, warnings=warnings))
    shown = console.export_text().rpartition("LAST WARNINGS")[2].splitlines()
    rows = shown[1:-1] if kept < 5 else shown[1:]
    assert [line.split()[-1] for line in rows] == [f"{number}" for number in range(5 - kept, 5)]
    assert kept == 5 or shown[-1].split() == ["others", f"{5 - kept}", "DrainFailing"]


def test_lines_are_written_for_changes_only() -> None:
    lines: list[str] = []
    screen = Lines(lines.append, now=lambda: START)
    show(screen)
    assert lines[-4:] == [
        "12:00:00  plan demo: Running",
        "12:00:00  Connection lost",
        "12:00:00  Connected again",
        "12:00:00  now: node-2: waiting for Rancher",
    ]


def test_report_is_tables_and_then_lines() -> None:
    output = io.StringIO()
    screen = Report(Console(file=output, width=200))
    screen.show_message("first")
    show(screen)
    lines = output.getvalue().splitlines()
    assert lines[:2] == ["first", "UpgradePlan   demo  Running"]
    last = ["Connection lost", "Connected again", "now: node-2: waiting for Rancher"]
    assert [line[10:] for line in lines[-3:]] == last
    assert "\x1b" not in output.getvalue()
    assert [line for line in lines if line != line.rstrip()] == []


def test_documents_are_apart_from_notices() -> None:
    documents: list[str] = []
    notices: list[str] = []
    screen = Documents(documents.append, form=lambda view: view.waiting[:6], show_message=notices.append)
    show(screen)
    assert (documents, notices) == (["node-1", "node-1", "node-2"], ["Connection lost", "Connected again"])
