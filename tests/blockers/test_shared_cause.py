"""Several blockers with one cause are one blocker, also after a restart and when some of its objects recover."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from upgrade_manager.api.blockers import Blocker, BlockerReason, continues, read_blockers
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.shared_cause import combine

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WORDS = "cannot be scheduled (Unschedulable: 0/3 nodes are available)"


def pod(number: int, *, cause: str = WORDS, since: datetime = NOON) -> Blocker:
    untaint = Remedy("Remove the taint", command=f"untaint node-{number}", undo=f"taint node-{number}")
    return Blocker(
        reason=BlockerReason.POD_UNSCHEDULABLE,
        kind="Pod",
        namespace="ns",
        name=f"p{number}",
        node=f"node-{number}",
        message=f"Pod ns/p{number}: it {cause}",
        remedies=(untaint, Remedy("Show its events", command=f"describe p{number}")),
        since=since,
        cause=cause,
    )


def recorded(blocker: Blocker) -> Blocker:
    """Return the blocker as another process reads it from the status."""
    (found,) = read_blockers([blocker.entry()])
    return found


@pytest.mark.rule("blockers: Pods that one cause holds up are one blocker, with the remedies of all")
def test_pods_with_one_cause_are_one_blocker() -> None:
    (found,) = combine([pod(2), pod(0, since=NOON + timedelta(minutes=1)), pod(1)], [])
    assert found.message == f"3 Pods on node-0, node-1, node-2: {WORDS}"
    assert (found.name, found.others, found.node, found.since) == ("p1", ("p0", "p2"), "", NOON)
    assert [one.command for one in found.remedies] == [
        "untaint node-0",
        "untaint node-1",
        "untaint node-2",
        "describe p1",
    ]
    assert recorded(found).others == ("p0", "p2")


@pytest.mark.parametrize(
    ("taints", "message"),
    [
        pytest.param(["a", "a"], "2 Pods on node-0, node-1 cannot be scheduled: taint a", id="alike"),
        pytest.param(
            ["a", "b"], f"2 Pods on node-0, node-1: {WORDS}. Pod ns/p0 cannot be scheduled: taint a", id="not"
        ),
    ],
)
def test_pods_with_the_same_clause_are_named_with_it(taints: list[str], message: str) -> None:
    pods = [
        replace(pod(number), message=f"Pod ns/p{number} cannot be scheduled: taint {taint}")
        for number, taint in enumerate(taints)
    ]
    (found,) = combine(pods, [])
    assert found.message == message


def test_other_causes_and_single_pods_stay_apart() -> None:
    other = pod(3, cause="cannot be scheduled (too little memory)")
    bare = [pod(4, cause=""), pod(5, cause="")]
    assert combine([pod(1), other, *bare], []) == [pod(1), other, *bare]


def test_message_ends_with_what_the_first_one_says_more() -> None:
    image = "image a/b:1 cannot be pulled"
    first, second = (replace(pod(number, cause=image), message=f"Pod ns/p{number}: no such host") for number in (1, 2))
    (found,) = combine([first, second], [])
    assert found.message == f"2 Pods on node-1, node-2: {image}. Pod ns/p1: no such host"


def test_pods_without_a_node_are_named() -> None:
    (found,) = combine([replace(pod(1), node=""), replace(pod(2), node="")], [])
    assert found.message == f"2 Pods (p1, p2): {WORDS}"


@pytest.mark.rule("blockers: a blocker of several objects goes on while one of them is held up")
def test_blocker_goes_on_after_one_pod_recovers() -> None:
    earlier = NOON - timedelta(hours=1)
    (before,) = combine([pod(0, since=earlier), pod(1), pod(2)], [])
    known = recorded(before)
    assert known.name == "p0"
    (after,) = combine([pod(1), pod(2)], [known])
    assert (after.name, after.others, after.since) == ("p1", ("p2",), earlier)
    assert continues(known, after)
    (last,) = combine([pod(2)], [recorded(after)])
    assert (last.name, last.since, last.message) == ("p2", earlier, f"Pod ns/p2: it {WORDS}")
    assert continues(recorded(after), last)
    assert not continues(recorded(last), pod(1))


def test_known_name_stays_while_its_pod_is_held_up() -> None:
    known = recorded(combine([pod(1), pod(2)], [])[0])
    (found,) = combine([pod(0, since=NOON - timedelta(hours=1)), pod(1), pod(2)], [known])
    assert (found.name, found.others) == ("p1", ("p0", "p2"))


@pytest.mark.rule("blockers: since survives a restart, and the event is not repeated")
def test_known_blocker_stands_until_all_its_objects_are_listed() -> None:
    known = recorded(combine([pod(0), pod(1), pod(2)], [])[0])
    assert combine([pod(1), known, known], [known]) == [known]
    (found,) = combine([pod(0), pod(1), pod(2)], [known])
    assert found.identity[:4] == known.identity[:4]
    assert found.message == known.message


def test_words_that_change_one_after_the_other_clear_nothing() -> None:
    known = recorded(combine([pod(0), pod(1), pod(2)], [])[0])
    apart = combine([pod(1), pod(2, cause="cannot be scheduled (others)")], [known])
    assert len(apart) == 2
    assert all(continues(known, one) for one in apart)
    (again,) = combine([pod(1), pod(2)], [recorded(one) for one in apart])
    assert all(continues(recorded(one), again) for one in apart)
