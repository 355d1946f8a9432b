"""The record of the changes that remedies advise."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from upgrade_manager.api.advised import MAX_ADVISED, with_advised
from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Change, Remedy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNDO = "kubectl scale deploy/a --replicas=2"


def blocker(*changes: Change) -> Blocker:
    remedies = (Remedy("Look at it"), Remedy("Scale it", command="kubectl scale", undo=UNDO, changes=changes))
    reason = BlockerReason.REPOSITORY_UNAVAILABLE
    return Blocker(reason=reason, kind="Deployment", name="a", message="m", remedies=remedies, since=NOW)


def change(name: str = "a", original: Any = 2) -> Change:
    return Change(kind="Deployment", namespace="ns", name=name, field="spec.replicas", original=original)


ENTRY = {
    "kind": "Deployment",
    "namespace": "ns",
    "name": "a",
    "field": "spec.replicas",
    "original": "2",
    "undo": UNDO,
}


@pytest.mark.parametrize("recorded", [None, [], 7, ["x", None]], ids=repr)
def test_advised_change_is_recorded_with_the_value_before(recorded: object) -> None:
    assert with_advised(recorded, [blocker(change())]) == [ENTRY]


def test_first_original_stays() -> None:
    assert with_advised([ENTRY], [blocker(change(original=0)), blocker(change(original=1))]) == [ENTRY]


def test_object_without_namespace_has_none() -> None:
    node = Change(kind="Node", name="n1", field="spec.taints", original={"key": "k"})
    [entry] = with_advised(None, [blocker(node)])
    assert (entry["original"], "namespace" in entry) == ('{"key":"k"}', False)


def test_record_is_bounded() -> None:
    found = with_advised(None, [blocker(*(change(str(number)) for number in range(MAX_ADVISED + 5)))])
    assert [one["name"] for one in found] == [str(number) for number in range(MAX_ADVISED)]
