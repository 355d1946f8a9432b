from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hack.apiserver.patches import merge
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.pipeline.status import StatusPatch

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SINCE = {"since": "2026-01-01T00:00:00Z"}


def _accept(patch: StatusPatch) -> None:
    patch.accept("Initializing", "v1.8.0")
    patch.waiting("waiting for a Node")


@dataclass
class Clock:
    """A wall clock that is set by hand."""

    time: datetime = EPOCH


def new_patch(status: dict[str, Any] | None = None, *, clock: Clock | None = None, generation: int = 3) -> StatusPatch:
    now = clock or Clock()
    return StatusPatch({"metadata": {"generation": generation}, "status": status}, now=lambda: now.time)


def accepted(*, clock: Clock | None = None) -> StatusPatch:
    patch = new_patch(clock=clock)
    _accept(patch)
    return patch


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def written(patch: StatusPatch, before: dict[str, Any] | None = None) -> dict[str, Any]:
    result: dict[str, Any] = merge(before or {}, patch.difference())
    return result


#: The conditions that follow from the others.
DERIVED = {"Reconciling", "Ready", "Stalled"}
FAILURE = "Failed in Initialize: this plan has upgraded neither components nor nodes. Next step: see Degraded"
#: By moment: the method called, and the conditions after it; None where one is absent.
HEALTHY = {
    "Available": ("True", "Executable", "Upgrading to v1.8.0"),
    "Progressing": ("True", "Initializing", "waiting for a Node"),
    "Degraded": ("False", "ReconcileSuccess", ""),
}
DEGRADED = HEALTHY | {"Degraded": ("True", "ReconcileError", "the last error")}
#: A plan whose first reconciles failed before it was accepted.
REFUSED = {"Degraded": DEGRADED["Degraded"]}
BLOCKED = (
    "False",
    "ConcurrentUpgradeBlocked",
    "UpgradePlan first is in progress. This plan starts by itself once nothing holds the cluster",
)
MOMENTS: dict[str, tuple[Callable[[StatusPatch], None], Mapping[str, tuple[str, str, str] | None]]] = {
    "accepted": (_accept, HEALTHY),
    "an error": (
        lambda patch: patch.degraded("the repository\nis not found"),
        {"Degraded": ("True", "ReconcileError", "the repository is not found")},
    ),
    "queued": (lambda patch: patch.queue(BLOCKED[2], since="2026-01-01T00:00:00Z"), {"Available": BLOCKED}),
    "succeeded": (
        lambda patch: patch.succeed("v1.8.0"),
        {
            "Available": ("False", "Executed", "The upgrade succeeded"),
            "Progressing": ("False", "Succeeded", "Upgraded to v1.8.0 in 0 s (0 nodes)"),
            "Degraded": ("False", "ReconcileSuccess", ""),
        },
    ),
    "failed": (
        lambda patch: patch.fail("the disk is full", cause="the disk is full", todo="Correct it"),
        {
            "Available": (
                "False",
                "Executed",
                FAILURE,
            ),
            "Progressing": ("False", "Refused", "the disk is full"),
            "Degraded": (
                "True",
                "UpgradeFailed",
                "the disk is full. Correct it",
            ),
        },
    ),
}


class TestConditions:
    """The table of api.md."""

    @pytest.mark.rule(
        "api: the conditions are Available, Progressing and Degraded",
        "api: a condition's observedGeneration is the generation it was computed from",
        "api: lastTransitionTime changes only with the condition's status",
        "api: accepted: Available=True (Executable)",
        "api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for",
        "api: accepted: Degraded=False (ReconcileSuccess)",
        "api: retried error: Degraded=True (ReconcileError) with the error as message",
        "api: retried error: Available and Progressing are unchanged",
        "api: queued: Available=False (ConcurrentUpgradeBlocked) names the holder",
        "api: queued: Progressing is absent and Degraded is unchanged",
        "api: succeeded: Available=False (Executed) with its fixed message",
        "api: succeeded: Progressing=False (Succeeded) with its fixed message",
        "api: succeeded: Degraded=False (ReconcileSuccess)",
        "api: failed: Available=False (Executed) with its fixed message",
        "api: refused: Progressing=False (Refused) with the cause as message",
        "api: failed: Degraded=True (UpgradeFailed) with the cause and what to do",
    )
    @pytest.mark.parametrize(
        ("moment", "before"),
        [
            pytest.param("accepted", {}, id="accepted"),
            pytest.param("accepted", REFUSED, id="accepted after an error"),
            pytest.param("an error", HEALTHY, id="an error that is retried"),
            pytest.param("an error", DEGRADED, id="another error than the last"),
            pytest.param("an error", {}, id="an error before anything else"),
            pytest.param("queued", {}, id="another plan is in progress"),
            pytest.param("queued", REFUSED, id="another plan is in progress after an error"),
            pytest.param("succeeded", HEALTHY, id="succeeded"),
            pytest.param("succeeded", DEGRADED, id="succeeded after an error"),
            pytest.param("failed", HEALTHY, id="failed"),
            pytest.param("failed", DEGRADED, id="failed in an error"),
        ],
    )
    def test_conditions_match_the_table(self, moment: str, before: dict[str, tuple[str, str, str]]) -> None:
        """Other conditions are unchanged, all have the generation, and transition times follow statuses."""
        since, now = "2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z"
        old = {
            "conditions": [
                {"type": type_, "status": said[0], "reason": said[1], "message": said[2], "lastTransitionTime": since}
                for type_, said in before.items()
            ]
        }
        deed, row = MOMENTS[moment]
        patch = new_patch(old)
        deed(patch)
        patch.summarize()
        after = written(patch, old)
        after["conditions"] = [one for one in after["conditions"] if one["type"] not in DERIVED]
        expected = {type_: said for type_, said in {**before, **row}.items() if said is not None}
        assert conditions(after) == expected
        assert {c["observedGeneration"] for c in after["conditions"]} == {3}
        moved = {c["type"]: c["lastTransitionTime"] for c in after["conditions"]}
        assert moved == {
            type_: since if before.get(type_, ("",))[0] == said[0] else now for type_, said in expected.items()
        }

    @pytest.mark.rule("api: failed: Progressing=False (Failed) with the cause as message")
    def test_long_cause_is_kept_up_to_the_api_limit(self) -> None:
        patch = accepted()
        patch.fail("node, " * 5000, cause="x", todo="y")
        assert conditions(written(patch))["Progressing"][2] == ("node, " * 5000).strip()
        patch.fail("node, " * 9000, cause="x", todo="y")
        assert len(conditions(written(patch))["Progressing"][2]) <= 32768

    @pytest.mark.rule("api: a condition's observedGeneration is the generation it was computed from")
    def test_spec_change_keeps_conditions_up_to_date(self) -> None:
        first = accepted()
        first.succeed("v1.8.0")
        before = written(first)
        patch = new_patch(before, clock=Clock(EPOCH + timedelta(hours=1)), generation=4)
        patch.summarize()
        after = written(patch, before)
        assert after["observedGeneration"] == 4
        after["conditions"] = [one for one in after["conditions"] if one["type"] not in DERIVED]
        assert [c.pop("observedGeneration") for c in after["conditions"]] == [4, 4, 4]
        assert after["conditions"] == [
            {k: v for k, v in c.items() if k != "observedGeneration"} for c in before["conditions"]
        ]

    @pytest.mark.rule("api: lastTransitionTime changes only with the condition's status")
    def test_restored_condition_status_keeps_its_time(self) -> None:
        clock = Clock()
        first = accepted(clock=clock)
        first.degraded("x")
        before = written(first)
        clock.time += timedelta(hours=1)
        patch = new_patch(before, clock=clock)
        patch.healthy()
        clock.time += timedelta(hours=1)
        patch.degraded("x")
        assert patch.difference() == {}

    def test_conditions_of_other_controllers_are_kept(self) -> None:
        other = {"type": "Paused", "status": "True", "severity": "low"}
        patch = new_patch({"conditions": [other]})
        patch.accept("Initializing", "v1.8.0")
        assert written(patch)["conditions"][0] == other


class TestPhases:
    @pytest.mark.rule("api: each phase value is recorded once")
    def test_phase_value_is_recorded_once(self) -> None:
        clock = Clock()
        patch = new_patch(clock=clock)
        patch.record("Initializing")
        clock.time += timedelta(hours=1)
        patch.record("Initializing")
        assert written(patch)["phaseTransitionTimestamps"] == [
            {"phase": "Initializing", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}
        ]

    def test_unwritten_phases_are_the_new_ones(self) -> None:
        old = [{"phase": "Initializing", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
        patch = new_patch({"phaseTransitionTimestamps": old})
        patch.record("Initialized")
        patch.record("ISODownloading")
        assert patch.unwritten_phases() == ["Initialized", "ISODownloading"]

    def test_malformed_timestamps_are_kept(self) -> None:
        odd = {"phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}
        patch = new_patch({"phaseTransitionTimestamps": [odd]})
        patch.record("Initializing")
        assert patch.unwritten_phases() == ["Initializing"]
        assert written(patch)["phaseTransitionTimestamps"][0] == odd

    def test_phases_are_recorded_while_the_clock_goes_back(self) -> None:
        clock = Clock()
        patch = new_patch(clock=clock)
        patch.record("Initializing")
        clock.time -= timedelta(days=1)
        patch.record("Initialized")
        assert patch.recorded_phases() == ["Initializing", "Initialized"]


class TestNodes:
    @pytest.mark.rule("api: nodeUpgradeStatuses map a node to state, its time, and optional reason and message")
    def test_node_message_is_dropped_with_the_next_state(self) -> None:
        patch = new_patch()
        patch.move_node("n1", NodeState.PRE_DRAINING, message="1 failed\nattempt")
        assert written(patch)["nodeUpgradeStatuses"] == {
            "n1": {"state": "PreDraining", **SINCE, "message": "1 failed attempt"}
        }
        patch.move_node("n1", NodeState.PRE_DRAINED)
        assert written(patch)["nodeUpgradeStatuses"] == {"n1": {"state": "PreDrained", **SINCE}}

    @pytest.mark.rule(
        "api: a node's state group never decreases", "pipeline: node states are merged into the status forward only"
    )
    @pytest.mark.parametrize(
        ("before", "state", "after"),
        [
            pytest.param({"state": "WaitingReboot", "message": "m"}, "PreDrained", None, id="state never moves back"),
            pytest.param({"state": "Polishing", "percent": 3}, "PostDrained", None, id="unknown state is kept"),
            pytest.param({"state": "PreDraining", "percent": 3}, "PreDrained", "PreDrained", id="fields are kept"),
        ],
    )
    def test_node_state_is_merged(self, before: dict[str, Any], state: str, after: str | None) -> None:
        patch = new_patch({"nodeUpgradeStatuses": {"n1": before}})
        assert "n1" in patch.nodes
        assert patch.node_state("n1") == (None if before["state"] == "Polishing" else before["state"])
        patch.move_node("n1", NodeState(state), message="" if after else "x")
        assert patch.difference() == ({"nodeUpgradeStatuses": {"n1": {"state": after, **SINCE}}} if after else {})

    def test_null_node_statuses_are_empty(self) -> None:
        patch = new_patch({"nodeUpgradeStatuses": None})
        assert "n1" not in patch.nodes
        patch.move_node("n1", NodeState.PRE_DRAINED)
        assert patch.node_state("n1") is NodeState.PRE_DRAINED


def test_success_message_summarises_the_upgrade() -> None:
    clock = Clock()
    patch = accepted(clock=clock)
    patch["previousVersion"] = "v1.7.1"
    patch.move_node("n1", NodeState.IMAGE_CLEANED)
    for hours, duration in ((0, "12 min 5 s"), (3, "3 h 12 min")):
        clock.time = EPOCH + timedelta(hours=hours, minutes=12, seconds=5)
        patch.succeed("v1.8.0")
        message = conditions(written(patch))["Progressing"][2]
        assert message == f"Upgraded from v1.7.1 to v1.8.0 in {duration} (1 node)"


def test_none_removes_a_field() -> None:
    patch = new_patch({"singleNode": "n1", "futureField": {"a": None}})
    patch["singleNode"] = None
    assert patch.difference() == {"singleNode": None}


def test_cached_plan_is_not_modified() -> None:
    status: dict[str, Any] = {"nodeUpgradeStatuses": {"n1": {"state": "PreDraining"}}, "conditions": []}
    kept = copy.deepcopy(status)
    patch = new_patch(status)
    patch.accept("Initializing", "v1.8.0")
    patch.move_node("n1", NodeState.PRE_DRAINED)
    assert status == kept


def test_rebase_keeps_unwritten_changes_on_request() -> None:
    patch = new_patch()
    patch.record("Initializing")
    patch.rebase({"metadata": {"generation": 4}}, keep=True)
    assert patch.unwritten_phases() == ["Initializing"]
    patch.rebase({"metadata": {"generation": 4}})
    assert patch.difference() == {}


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
    st.tuples(st.just("succeed"), st.just("v1.8.0")),
    st.tuples(st.just("accept"), st.sampled_from(PHASE_VALUES), st.just("v1.8.0")),
)


def act(patch: StatusPatch, name: str, *arguments: Any) -> None:
    if name == "fail":
        patch.fail(*arguments, cause="x", todo="y", steps=[Remedy("z")])
    else:
        getattr(patch, name)(*arguments)


@settings(max_examples=100)
@given(STATUSES, st.lists(ACTIONS, max_size=12))
def test_difference_patches_the_old_status_to_the_new(status: dict[str, Any], actions: list[tuple[Any, ...]]) -> None:
    patch = new_patch(copy.deepcopy(status))
    for name, *arguments in actions:
        act(patch, name, *arguments)
    after = written(patch, status)
    assert after.get("future") == status.get("future")
    assert new_patch(after).difference() == {}
    again = new_patch(after)
    for name, *arguments in actions:
        if name in {"record", "move_node"}:
            getattr(again, name)(*arguments)
    assert again.difference().keys() <= {"currentPhase"}


@pytest.mark.rule(
    "api: phaseTransitionTimestamps are append-only", "pipeline: node states are merged into the status forward only"
)
@settings(max_examples=100)
@given(STATUSES, st.lists(ACTIONS, max_size=12))
def test_phases_are_append_only_and_nodes_move_forward(status: dict[str, Any], actions: list[tuple[Any, ...]]) -> None:
    patch = new_patch(copy.deepcopy(status))
    recorded: list[str] = []
    groups: dict[str, int] = {}
    for name, *arguments in actions:
        act(patch, name, *arguments)
        assert patch.recorded_phases()[: len(recorded)] == recorded
        recorded = patch.recorded_phases()
        assert len(recorded) == len(set(recorded))
        for node in ("n1", "n2"):
            state = patch.node_state(node)
            assert (state.group if state else -1) >= groups.get(node, -1)
            groups[node] = state.group if state else -1
