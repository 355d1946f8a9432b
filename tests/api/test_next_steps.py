"""The steps after a failure, as the status holds them."""

from __future__ import annotations

import pytest

from upgrade_manager.api.next_steps import LAST, MAX_COMMAND, MAX_STEPS, step_entries, with_reminders
from upgrade_manager.api.remedy import Remedy, as_line
from upgrade_manager.api.text import MESSAGE_LIMIT


@pytest.mark.parametrize(
    ("step", "entry"),
    [
        pytest.param(Remedy("a\nb", command="x\ty"), {"text": "a b", "command": "x y"}, id="one line"),
        pytest.param(Remedy("a", command="y" * MAX_COMMAND), {"text": "a", "command": "y" * MAX_COMMAND}, id="longest"),
        pytest.param(Remedy("a", command="y" * (MAX_COMMAND + 1)), {"text": "a"}, id="a command is never cut"),
        pytest.param(Remedy("a" * 9999), {"text": "a" * (MESSAGE_LIMIT - 1) + "…"}, id="a long text"),
    ],
)
def test_steps_are_bounded(step: Remedy, entry: dict[str, str]) -> None:
    assert step_entries([step]) == [entry]


def numbered(count: int) -> list[Remedy]:
    return [Remedy(f"step {number}") for number in range(count)]


def texts(entries: list[dict[str, str]]) -> list[str]:
    return [entry["text"] for entry in entries]


@pytest.mark.rule("status: of too many next steps the first and the last ones stay, and the others are counted")
@pytest.mark.parametrize(
    ("count", "left_out"),
    [
        pytest.param(MAX_STEPS, 0, id="full"),
        pytest.param(MAX_STEPS + 1, 2, id="one too many"),
        pytest.param(1000, 971, id="many"),
    ],
)
def test_last_steps_stay(count: int, left_out: int) -> None:
    found = texts(step_entries(numbered(count)))
    every = texts(step_entries(numbered(MAX_STEPS))) if not left_out else []
    assert len(found) == MAX_STEPS
    assert found[0] == "step 0"
    assert found[-LAST:] == [f"step {number}" for number in range(count - LAST, count)]
    assert found == every or found[-LAST - 1] == f"And {left_out} more steps like these"


@pytest.mark.rule("status: of too many next steps the first and the last ones stay, and the others are counted")
def test_reminders_come_after_the_first_step_once() -> None:
    known = with_reminders(step_entries(numbered(3)), [Remedy("x"), Remedy("step 2")])
    assert texts(known) == ["step 0", "x", "step 1", "step 2"]
    assert with_reminders(known, [Remedy("x")]) == known
    full = with_reminders(known, [Remedy(f"y {number}") for number in range(99)])
    assert (len(full), texts(full)[-LAST:]) == (MAX_STEPS, ["x", "step 1", "step 2"])
    assert with_reminders(full, [Remedy("y 98")]) == full


A, B, PLAIN = Remedy("Do a", command="a"), Remedy("Do b", command="b"), Remedy("Look")


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        pytest.param([], "", id="none"),
        pytest.param([PLAIN, PLAIN], "Look. Look", id="no command"),
        pytest.param([A, PLAIN], "Look. Do a: a", id="a command ends the line"),
        pytest.param([A, PLAIN, B], "Look. (1) Do a: a (2) Do b: b", id="numbers follow commands"),
    ],
)
def test_no_sentence_follows_a_command(steps: list[Remedy], line: str) -> None:
    assert as_line(steps) == line
