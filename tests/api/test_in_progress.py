from __future__ import annotations

import pytest

from upgrade_manager.api.conditions import TAKEN_OVER
from upgrade_manager.api.in_progress import blocks_next_plan, is_in_progress, taken_over, wait_command
from upgrade_manager.api.ledger import STRATEGY_FIELD, LedgerKind, new_entry

INTERVAL = {"object": "Setting longhorn-system/x", "field": "value"}
STRATEGY = {"object": "Cluster fleet-local/local", "field": STRATEGY_FIELD}

HOLDING = {LedgerKind.SETTING, LedgerKind.ANNOTATION, LedgerKind.UPDATE_METHODS}


def entry(kind: LedgerKind) -> dict[str, object]:
    return new_entry(kind, "x", object_="Setting longhorn-system/x", since="2026-01-01T00:00:00Z")


def progressing(status: str) -> list[object]:
    return [{"type": "Progressing", "status": status}]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"conditions": progressing("True"), "currentPhase": "Initializing"}, True, id="progressing"),
        pytest.param({"conditions": progressing("False"), "currentPhase": "CleaningUp"}, True, id="cleaning up"),
        pytest.param({"conditions": progressing("False"), "currentPhase": "Succeeded"}, False, id="ended"),
        pytest.param({}, False, id="not accepted"),
        pytest.param({"conditions": None}, False, id="null conditions"),
        pytest.param(None, False, id="no status"),
    ],
)
def test_is_in_progress(status: object, *, expected: bool) -> None:
    assert is_in_progress(status) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"originals": [STRATEGY, INTERVAL]}, True, id="a setting"),
        pytest.param({"originals": [STRATEGY]}, False, id="the strategy only"),
        pytest.param({"originals": [None, {"object": "x"}]}, False, id="invalid entries"),
        pytest.param({"originals": None}, False, id="null"),
        *(
            pytest.param({"ledger": [entry(kind)]}, kind in HOLDING, id=f"an entry of kind {kind}")
            for kind in LedgerKind
        ),
        pytest.param({"ledger": [entry(LedgerKind.SETTING) | {"kind": "Future"}]}, False, id="an unknown kind"),
        pytest.param([], False, id="no status"),
    ],
)
def test_blocks_next_plan(status: object, *, expected: bool) -> None:
    assert blocks_next_plan(status) is expected


def test_wait_command_waits_for_both_ends() -> None:
    assert wait_command("r") == (
        "kubectl wait --for=condition=Progressing=False --timeout=24h upgradeplans.management.harvesterhci.io r"
    )


OTHER = "Plan up-2 has taken over. Delete this one"


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        pytest.param(
            [{"type": "Degraded", "reason": TAKEN_OVER, "message": OTHER}],
            "Plan up-2 has taken over, so that this one has no further attempt",
            id="taken over",
        ),
        pytest.param([{"type": "Degraded", "reason": "JobFailed", "message": OTHER}], "", id="failed"),
        pytest.param([], "", id="no condition"),
        pytest.param(None, "", id="null"),
    ],
)
def test_plan_after_which_another_started_has_no_attempt(conditions: object, why: str) -> None:
    assert taken_over({"conditions": conditions}) == why
