"""The messages of a denied plan, as a user reads them."""

from __future__ import annotations

import pytest

from tests.support.webhook import admission_messages


@pytest.mark.rule("admission: all findings are reported at once, in the table's order")
def test_messages_match_the_listing() -> None:
    assert admission_messages.text() == admission_messages.PATH.read_text(), (
        "if that is meant: python -m tests.support.webhook.admission_messages"
    )


def test_messages_say_what_to_do() -> None:
    lines = admission_messages.PATH.read_text().splitlines()
    assert [line for line in lines if ". " not in line] == []
