"""Texts that others write into Pods and events are cut, and harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.blockers import MAX_TEXT
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.table import FINDERS
from upgrade_manager.blockers.wait import JobWait

if TYPE_CHECKING:
    from tests.blockers.conftest import FakeView

JOB = {"batch.kubernetes.io/job-name": "j"}
HOSTILE = [
    pytest.param("\x1b[2J\x1b]0;owned\x07\r\nfake line", id="control characters"),
    pytest.param("m" * 1_000_000, id="1 MB"),
    pytest.param("\u202etxt.exe\u2028\ud800", id="direction and surrogate"),
]


def waiting(view: FakeView, text: str) -> dict[str, Any]:
    status = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "Bad", "message": text}}}]}
    return {
        "metadata": {"name": "p", "namespace": "ns", "labels": JOB, "creationTimestamp": view.time(90)},
        "status": status,
    }


def unschedulable(view: FakeView, text: str) -> dict[str, Any]:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    pod = waiting(view, "")
    return {**pod, "status": {"phase": "Pending", "conditions": [scheduled]}}


def failing(view: FakeView, text: str) -> dict[str, Any]:
    return {**waiting(view, ""), "status": {"phase": "Pending", "reason": "Evicted", "message": text}}


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("make", [waiting, unschedulable, failing, None])
def test_hostile_text_is_one_short_printable_line(view: FakeView, text: str, make: Any) -> None:
    event = {
        "metadata": {"name": "e", "namespace": "ns"},
        "involvedObject": {"kind": "Job", "namespace": "ns", "name": "j"},
        "message": text,
    }
    view.found["Event"] = [event]
    view.found["Pod"] = [make(view, text)] if make else []
    since = view.ago(90)
    wait = JobWait(namespace="ns", name="j", since=since, stepped=since, pods="x=y")
    (found,) = find_blockers(FINDERS, view, [wait], []).blockers
    entry = found.entry()
    assert found.name in {"p", "j"}
    assert entry["message"].isprintable()
    assert len(entry["message"]) <= MAX_TEXT
