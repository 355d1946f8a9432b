from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.pipeline.status import StatusPatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def _accepted(made: StatusPatch) -> None:
    made.accept("Initializing")
    made.waiting("waiting for a Node")


class Clock:
    """A wall clock that is set by hand."""

    def __init__(self) -> None:
        self.time = EPOCH

    def __call__(self) -> datetime:
        return self.time


def draft(status: dict[str, Any] | None = None, *, now: Any = lambda: EPOCH) -> StatusPatch:
    return StatusPatch({"metadata": {"generation": 3}, "status": status}, now=now)


def apply(target: Any, patch: Any) -> Any:
    """RFC 7386, as the API server does it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply(result.get(key), value)
    return result


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def written(made: StatusPatch, before: dict[str, Any] | None = None) -> dict[str, Any]:
    result: dict[str, Any] = apply(before or {}, made.difference())
    return result


#: The rows of the contract's table: what is done, and what the conditions are then; None where one is not there.
HEALTHY = {
    "Available": ("True", "Executable", "UpgradePlan is being executed"),
    "Progressing": ("True", "Initializing", "waiting for a Node"),
    "Degraded": ("False", "ReconcileSuccess", ""),
}
DEGRADED = HEALTHY | {"Degraded": ("True", "ReconcileError", "the last error")}
#: A plan that nobody has accepted yet, but whose first steps went wrong.
REFUSED = {"Degraded": DEGRADED["Degraded"]}
BLOCKED = (
    "False",
    "ConcurrentUpgradeBlocked",
    "UpgradePlan first is in progress; delete this plan and create it again when that one has ended",
)
EXECUTED = ("False", "Executed", "Entered one of the terminal phases")
MOMENTS: dict[str, tuple[Callable[[StatusPatch], None], Mapping[str, tuple[str, str, str] | None]]] = {
    "accepted": (_accepted, HEALTHY),
    "an error": (
        lambda made: made.degraded("the repository\nis gone"),
        {"Degraded": ("True", "ReconcileError", "the repository is gone")},
    ),
    "blocked": (lambda made: made.block("first"), {"Available": BLOCKED, "Progressing": None}),
    "succeeded": (
        StatusPatch.succeed,
        {
            "Available": EXECUTED,
            "Progressing": ("False", "Succeeded", "UpgradePlan has completed"),
            "Degraded": ("False", "ReconcileSuccess", ""),
        },
    ),
    "failed": (
        lambda made: made.fail("the disk is full"),
        {"Available": EXECUTED, "Progressing": ("False", "Failed", "the disk is full")},
    ),
}


class TestConditions:
    """The contract's table, moment by moment."""

    @pytest.mark.rule(
        "api: the conditions are Available, Progressing and Degraded",
        "api: a condition's observedGeneration is the generation it was computed from",
        "api: lastTransitionTime changes only with the condition's status",
        "api: accepted: Available=True (Executable)",
        "api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for",
        "api: accepted: Degraded=False (ReconcileSuccess)",
        "api: retried error: Degraded=True (ReconcileError) with the error as message",
        "api: retried error: Available and Progressing are unchanged",
        "api: blocked: Available=False (ConcurrentUpgradeBlocked) names the other plan",
        "api: blocked: Progressing is absent and Degraded is unchanged",
        "api: succeeded: Available=False (Executed) with its fixed message",
        "api: succeeded: Progressing=False (Succeeded) with its fixed message",
        "api: succeeded: Degraded=False (ReconcileSuccess)",
        "api: failed: Available=False (Executed) with its fixed message",
        "api: failed: Progressing=False (Failed) with the cause as message",
        "api: failed: Degraded is unchanged",
    )
    @pytest.mark.parametrize(
        ("moment", "before"),
        [
            pytest.param("accepted", {}, id="accepted"),
            pytest.param("accepted", REFUSED, id="accepted after an error"),
            pytest.param("an error", HEALTHY, id="an error that is retried"),
            pytest.param("an error", DEGRADED, id="another error than the last"),
            pytest.param("an error", {}, id="an error before anything else"),
            pytest.param("blocked", {}, id="another plan is in progress"),
            pytest.param("blocked", REFUSED, id="another plan is in progress after an error"),
            pytest.param("succeeded", HEALTHY, id="succeeded"),
            pytest.param("succeeded", DEGRADED, id="succeeded after an error"),
            pytest.param("failed", HEALTHY, id="failed"),
            pytest.param("failed", DEGRADED, id="failed in an error"),
        ],
    )
    def test_each_moment_has_its_row(self, moment: str, before: dict[str, tuple[str, str, str]]) -> None:
        """What the row does not speak of is unchanged; all are judged by this generation; times move with statuses."""
        since, now = "2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z"
        old = {
            "conditions": [
                {"type": type_, "status": said[0], "reason": said[1], "message": said[2], "lastTransitionTime": since}
                for type_, said in before.items()
            ]
        }
        deed, row = MOMENTS[moment]
        made = draft(old)
        deed(made)
        made.observe_generation()
        after = written(made, old)
        expected = {type_: said for type_, said in {**before, **row}.items() if said is not None}
        assert conditions(after) == expected
        assert {c["observedGeneration"] for c in after["conditions"]} == {3}
        moved = {c["type"]: c["lastTransitionTime"] for c in after["conditions"]}
        assert moved == {
            type_: since if before.get(type_, ("",))[0] == said[0] else now for type_, said in expected.items()
        }

    @pytest.mark.rule("api: failed: Progressing=False (Failed) with the cause as message")
    def test_a_cause_that_names_a_thousand_nodes_is_kept_whole(self) -> None:
        made = draft()
        made.accept("Initializing")
        made.fail("node, " * 5000)
        assert conditions(written(made))["Progressing"][2] == ("node, " * 5000).strip()
        made.fail("node, " * 9000)
        assert len(conditions(written(made))["Progressing"][2]) <= 32768

    @pytest.mark.rule("api: a condition's observedGeneration is the generation it was computed from")
    def test_each_says_by_which_generation_it_was_judged(self) -> None:
        made = draft()
        made.accept("Initializing")
        assert {c["observedGeneration"] for c in written(made)["conditions"]} == {3}

    @pytest.mark.rule("api: a condition's observedGeneration is the generation it was computed from")
    def test_a_spec_that_changes_makes_none_of_them_out_of_date(self) -> None:
        first = draft()
        first.accept("Initializing")
        first.succeed()
        before = written(first)
        made = StatusPatch({"metadata": {"generation": 4}, "status": before}, now=lambda: EPOCH + timedelta(hours=1))
        made.observe_generation()
        after = written(made, before)["conditions"]
        assert [c.pop("observedGeneration") for c in after] == [4, 4, 4]
        assert after == [{k: v for k, v in c.items() if k != "observedGeneration"} for c in before["conditions"]]

    @pytest.mark.rule("api: lastTransitionTime changes only with the condition's status")
    def test_its_time_moves_with_its_status_only(self) -> None:
        clock = Clock()
        made = draft(now=clock)
        made.accept("Initializing")
        clock.time += timedelta(hours=1)
        made.waiting("something else")
        made.degraded("x")
        times = {c["type"]: c["lastTransitionTime"] for c in written(made)["conditions"]}
        assert times == {
            "Available": "2026-01-01T00:00:00Z",
            "Progressing": "2026-01-01T00:00:00Z",
            "Degraded": "2026-01-01T01:00:00Z",
        }

    @pytest.mark.rule("api: lastTransitionTime changes only with the condition's status")
    def test_a_status_that_went_and_came_back_unwritten_has_its_old_time(self) -> None:
        clock = Clock()
        first = draft(now=clock)
        first.accept("Initializing")
        first.degraded("x")
        before = written(first)
        clock.time += timedelta(hours=1)
        made = draft(before, now=clock)
        made.healthy()
        clock.time += timedelta(hours=1)
        made.degraded("x")
        assert made.difference() == {}

    def test_those_of_others_stay(self) -> None:
        other = {"type": "Paused", "status": "True", "severity": "low"}
        made = draft({"conditions": [other]})
        made.accept("Initializing")
        assert written(made)["conditions"][0] == other


class TestPhases:
    @pytest.mark.rule("api: each phase value is recorded once")
    def test_a_value_is_recorded_once(self) -> None:
        clock = Clock()
        made = draft(now=clock)
        made.record("Initializing")
        clock.time += timedelta(hours=1)
        made.record("Initializing")
        assert written(made)["phaseTransitionTimestamps"] == [
            {"phase": "Initializing", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}
        ]

    def test_only_what_is_new_is_unwritten(self) -> None:
        old = [{"phase": "Initializing", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
        made = draft({"phaseTransitionTimestamps": old})
        made.record("Initialized")
        made.record("ISODownloading")
        assert made.unwritten_phases() == ["Initialized", "ISODownloading"]

    def test_entries_of_another_form_are_kept_and_passed_over(self) -> None:
        odd = {"phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}
        made = draft({"phaseTransitionTimestamps": [odd]})
        made.record("Initializing")
        assert made.unwritten_phases() == ["Initializing"]
        assert written(made)["phaseTransitionTimestamps"][0] == odd

    def test_the_clock_may_go_back(self) -> None:
        clock = Clock()
        made = draft(now=clock)
        made.record("Initializing")
        clock.time -= timedelta(days=1)
        made.record("Initialized")
        assert made.recorded_phases() == ["Initializing", "Initialized"]


class TestNodes:
    @pytest.mark.rule("api: nodeUpgradeStatuses map a node to state and optional reason and message")
    def test_a_message_belongs_to_its_state(self) -> None:
        made = draft()
        made.move_node("n1", NodeState.PRE_DRAINING, message="1 failed\nattempt")
        assert written(made)["nodeUpgradeStatuses"] == {"n1": {"state": "PreDraining", "message": "1 failed attempt"}}
        made.move_node("n1", NodeState.PRE_DRAINED)
        assert written(made)["nodeUpgradeStatuses"] == {"n1": {"state": "PreDrained"}}

    @pytest.mark.rule(
        "api: a node's state group never decreases",
        "pipeline: node states are merged into the status forward only",
    )
    def test_no_node_goes_back(self) -> None:
        made = draft({"nodeUpgradeStatuses": {"n1": {"state": "WaitingReboot", "message": "m"}}})
        made.move_node("n1", NodeState.PRE_DRAINED, message="x")
        assert made.difference() == {}

    def test_what_a_newer_version_wrote_stays(self) -> None:
        made = draft({"nodeUpgradeStatuses": {"n1": {"state": "Polishing", "message": "m", "percent": 3}}})
        assert made.node_state("n1") is None
        assert made.has_node("n1")
        made.move_node("n1", NodeState.POST_DRAINED)
        assert made.difference() == {}

    def test_fields_of_a_newer_version_stay_beside_ours(self) -> None:
        made = draft({"nodeUpgradeStatuses": {"n1": {"state": "PreDraining", "percent": 3}}})
        made.move_node("n1", NodeState.PRE_DRAINED)
        assert made.difference() == {"nodeUpgradeStatuses": {"n1": {"state": "PreDrained"}}}

    def test_nothing_stands_where_null_does(self) -> None:
        made = draft({"nodeUpgradeStatuses": None})
        assert not made.has_node("n1")
        made.move_node("n1", NodeState.PRE_DRAINED)
        assert made.node_state("n1") is NodeState.PRE_DRAINED


class TestInformation:
    def test_messages_and_node_states_only_inform(self) -> None:
        made = draft()
        made.accept("Initializing")
        again = draft(written(made))
        again.waiting("1 of 3")
        again.move_node("n1", NodeState.PRE_DRAINING)
        assert again.only_informs()

    @pytest.mark.parametrize("change", ["degraded", "fail", "record"])
    def test_a_verdict_or_a_phase_is_more(self, change: str) -> None:
        made = draft()
        made.accept("Initializing")
        again = draft(written(made))
        getattr(again, change)("Initialized")
        assert not again.only_informs()

    def test_what_follows_a_message_is_a_detail(self) -> None:
        made = draft()
        made.accept("Initializing")
        made.waiting("waiting for a Job", "no Pod yet")
        assert conditions(written(made))["Progressing"][2] == "waiting for a Job; no Pod yet"
        again = draft(written(made))
        again.waiting("waiting for a Job", "running")
        assert again.only_details("waiting for a Job")
        again.waiting("waiting for a Job")
        assert again.only_details("waiting for a Job")

    @pytest.mark.parametrize(
        ("deed", "message"),
        [
            pytest.param(lambda _: None, "waiting for a Job", id="nothing"),
            pytest.param(lambda made: made.waiting("waiting for a Node"), "waiting for a Node", id="the message"),
            pytest.param(lambda made: made.degraded("x"), "waiting for a Job", id="a verdict"),
            pytest.param(lambda made: made.move_node("n", NodeState.PRE_DRAINING), "waiting for a Job", id="a node"),
            pytest.param(lambda made: made.record("Initialized"), "waiting for a Job", id="a phase"),
        ],
    )
    def test_anything_else_is_more_than_a_detail(self, deed: Callable[[StatusPatch], None], message: str) -> None:
        first = draft()
        first.accept("Initializing")
        first.waiting("waiting for a Job", "no Pod yet")
        made = draft(written(first))
        deed(made)
        assert not made.only_details(message)

    @pytest.mark.parametrize("old", [None, {"conditions": None}, {"conditions": ["odd"]}], ids=["none", "null", "odd"])
    def test_where_no_condition_was_there_is_no_detail_of_one(self, old: dict[str, Any] | None) -> None:
        made = draft(old)
        made.accept("Initializing")
        assert not made.only_details("")
        made = draft(old)
        made.healthy()
        assert not made.only_details("")

    def test_a_new_generation_is_more_than_a_detail(self) -> None:
        first = draft()
        first.accept("Initializing")
        first.waiting("waiting for a Job", "no Pod yet")
        made = StatusPatch({"metadata": {"generation": 4}, "status": written(first)}, now=lambda: EPOCH)
        made.waiting("waiting for a Job", "running")
        assert not made.only_details("waiting for a Job")


def test_a_field_is_taken_away_by_none() -> None:
    made = draft({"singleNode": "n1", "futureField": {"a": None}})
    made["singleNode"] = None
    assert made.difference() == {"singleNode": None}


def test_the_object_that_was_read_is_never_changed() -> None:
    status: dict[str, Any] = {"nodeUpgradeStatuses": {"n1": {"state": "PreDraining"}}, "conditions": []}
    kept = copy.deepcopy(status)
    made = draft(status)
    made.accept("Initializing")
    made.move_node("n1", NodeState.PRE_DRAINED)
    assert status == kept


def test_rebasing_keeps_what_is_not_written_where_it_is_told_to() -> None:
    made = draft()
    made.record("Initializing")
    made.rebase({"metadata": {"generation": 4}}, keep=True)
    assert made.unwritten_phases() == ["Initializing"]
    made.rebase({"metadata": {"generation": 4}})
    assert made.difference() == {}


UNKNOWN = st.recursive(
    st.integers() | st.text(max_size=5) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "previousVersion": st.text(max_size=5),
        "nodeUpgradeStatuses": st.dictionaries(
            st.sampled_from(["n1", "n2"]),
            st.fixed_dictionaries(
                {"state": st.sampled_from([*map(str, NodeState), "Polishing"])},
                optional={"message": st.text(max_size=5), "extra": UNKNOWN},
            ),
        ),
        "conditions": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["Paused", "Degraded"]), "status": st.sampled_from(["True", "False"])},
                optional={"reason": st.text(max_size=5), "extra": UNKNOWN},
            ),
            max_size=2,
            unique_by=lambda entry: str(entry["type"]),  # type: ignore[index]  # a mapping
        ),
        "future": UNKNOWN,
    },
)
ACTIONS = st.one_of(
    st.tuples(st.just("record"), st.sampled_from(PHASE_VALUES)),
    st.tuples(st.just("waiting"), st.text(max_size=9)),
    st.tuples(st.just("degraded"), st.text(max_size=9)),
    st.tuples(st.just("fail"), st.text(max_size=9)),
    st.tuples(st.just("move_node"), st.sampled_from(["n1", "n2"]), st.sampled_from(list(NodeState))),
    st.tuples(st.just("healthy")),
    st.tuples(st.just("succeed")),
    st.tuples(st.just("accept"), st.sampled_from(PHASE_VALUES)),
)


@settings(max_examples=100)
@given(STATUSES, st.lists(ACTIONS, max_size=12))
def test_the_difference_makes_the_new_status_of_the_old_one(
    status: dict[str, Any], actions: list[tuple[Any, ...]]
) -> None:
    made = draft(copy.deepcopy(status))
    for name, *arguments in actions:
        getattr(made, name)(*arguments)
    after = written(made, status)
    assert after.get("future") == status.get("future")
    assert draft(after).difference() == {}
    again = draft(after)
    for name, *arguments in actions:
        if name in {"record", "move_node"}:
            getattr(again, name)(*arguments)
    assert again.difference().keys() <= {"currentPhase"}


@pytest.mark.rule(
    "api: phaseTransitionTimestamps are append-only",
    "pipeline: node states are merged into the status forward only",
)
@settings(max_examples=100)
@given(STATUSES, st.lists(ACTIONS, max_size=12))
def test_history_only_grows_and_nodes_only_go_forward(status: dict[str, Any], actions: list[tuple[Any, ...]]) -> None:
    made = draft(copy.deepcopy(status))
    recorded: list[str] = []
    groups: dict[str, int] = {}
    for name, *arguments in actions:
        getattr(made, name)(*arguments)
        assert made.recorded_phases()[: len(recorded)] == recorded
        recorded = made.recorded_phases()
        assert len(recorded) == len(set(recorded))
        for node in ("n1", "n2"):
            state = made.node_state(node)
            assert (state.group if state else -1) >= groups.get(node, -1)
            groups[node] = state.group if state else -1
