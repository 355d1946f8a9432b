from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from upgrade_manager.api.node_states import NodeState, merge
from upgrade_manager.api.phases import PHASE_SPECS, PHASE_VALUES
from upgrade_manager.api.progress import progress_ratio


def status(phase: str, *states: str, end: str = "") -> dict[str, Any]:
    """Return a status that has reached the phase value, with nodes in these states."""
    recorded = PHASE_VALUES[: PHASE_VALUES.index(phase) + 1] if phase else ()
    return {
        "currentPhase": end or phase,
        "phaseTransitionTimestamps": [{"phase": value} for value in (*recorded, *([end] if end else []))],
        "nodeUpgradeStatuses": {f"n{number}": {"state": state} for number, state in enumerate(states)},
    }


BEFORE_NODES = sum(
    spec.weight for spec in PHASE_SPECS if spec.active in PHASE_VALUES[: PHASE_VALUES.index("NodeUpgrading")]
)


@pytest.mark.parametrize(
    ("found", "ratio"),
    [
        pytest.param({}, 0.0, id="no status"),
        pytest.param(status("Initializing"), 0.0, id="begun"),
        pytest.param(status("ISODownloading"), 0.01, id="first phase completed"),
        pytest.param(status("ImagePreloading", *["ImagePreloading"] * 3), 0.13, id="nodes preload"),
        pytest.param(status("ImagePreloading", "ImagePreloaded", "ImagePreloading"), 0.13 + 0.075, id="one has"),
        pytest.param(status("ImagePreloading", "ImagePreloaded"), 0.13 + 0.075, id="the next one is not recorded"),
        pytest.param(status("NodeUpgrading", *["ImagePreloaded"] * 3), BEFORE_NODES, id="nodes wait"),
        pytest.param(status("NodeUpgrading", "PostDrained", "PostDraining"), BEFORE_NODES + 0.75 * 0.45, id="upgrade"),
        pytest.param(
            status("NodeUpgrading", "PostDrainFailed", end="Failed"), BEFORE_NODES + 0.8 * 0.45, id="a node failed"
        ),
        pytest.param(status("NodeUpgrading", "Polishing", ""), BEFORE_NODES, id="unknown states"),
        pytest.param(status("CleaningUp", "ImageCleaned", "ImageCleaning"), 0.93 + 0.03, id="images are removed"),
        pytest.param(status("CleanedUp", "ImageCleaned"), 0.99, id="only the end is left"),
        pytest.param(status("CleanedUp", end="Succeeded"), 1.0, id="succeeded"),
    ],
)
def test_ratio_counts_phases_and_nodes(found: dict[str, Any], ratio: float) -> None:
    assert progress_ratio(found) == pytest.approx(ratio)


@pytest.mark.parametrize("seed", range(20))
def test_ratio_never_falls_and_is_1_at_the_end_only(seed: int) -> None:
    random, ratios, states = Random(seed), list[float](), ["ImagePreloading"] * 5
    later = sorted(NodeState, key=lambda state: state.group)
    for phase in PHASE_VALUES:
        for _ in range(8):
            ratios.append(progress_ratio(status(phase, *states)))
            index = random.randrange(len(states))
            position = later.index(NodeState(states[index]))
            states[index] = merge(states[index], later[min(position + random.randint(0, 2), len(later) - 1)])
    assert all(after >= before - 1e-9 for before, after in pairwise(ratios))
    assert max(ratios) < 1
