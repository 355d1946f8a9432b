from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console

from hack.demo.screen import Lines, Terminal
from hack.demo.view import View, build

NOW = datetime(2030, 1, 1, 12, 0, 9, tzinfo=UTC)


def view(waiting: str) -> View:
    condition = {"type": "Progressing", "status": "True", "message": waiting}
    plan = {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}, "status": {"conditions": [condition]}}
    return build(plan, [], now=NOW)


def test_lines_have_a_time_and_messages_do_not() -> None:
    written: list[str] = []
    with Lines(written.append, now=lambda: NOW) as screen:
        screen.say("a message")
        screen.show(view("for one thing"))
        screen.show(view("for one thing"))
        screen.show(view("for another"))
    assert written == ["a message", "12:00:09  now: for one thing", "12:00:09  now: for another"]


def test_a_terminal_keeps_the_last_view_and_does_not_fold() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, record=True)
    command = "kubectl --kubeconfig /tmp/a/rather/long/path/to/the/kubeconfig explain upgradeplans.spec"
    with Terminal(console) as screen:
        screen.say(command)
        screen.show(view("for one thing"))
        screen.show(view("for another"))
    text = console.export_text()
    assert command in text
    assert text.rstrip().endswith("now        for another")
