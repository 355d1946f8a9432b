from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from upgrade_manager.api.node_states import NodeState, merge
from upgrade_manager.api.phases import PHASE_VALUES, PHASES, PhaseName
from upgrade_manager.api.progress import progress_ratio


def status(phase: str, *states: str, end: str = "") -> dict[str, Any]:
    """Return a status that has reached the phase value, with nodes in these states."""
    recorded = PHASE_VALUES[: PHASE_VALUES.index(phase) + 1] if phase else ()
    return {
        "currentPhase": end or phase,
        "phaseTransitionTimestamps": [{"phase": value} for value in (*recorded, *([end] if end else []))],
        "nodeUpgradeStatuses": {f"n{number}": {"state": state} for number, state in enumerate(states)},
    }


def begun(phase: PhaseName, share: float = 0.0) -> float:
    """Return the weight of the phases before this one, plus a share of this one."""
    return sum(one.spec.weight for one in PHASES[: PHASES.index(phase)]) + share * phase.spec.weight


def without(phase: PhaseName, found: dict[str, Any]) -> dict[str, Any]:
    """Return the status as of a manager that had no such phase."""
    entries = found["phaseTransitionTimestamps"]
    kept = [entry for entry in entries if entry["phase"] not in {phase.active, phase.completed}]
    return {**found, "phaseTransitionTimestamps": kept}


PRELOAD, NODES, CLEANUP = PhaseName.IMAGE_PRELOAD, PhaseName.NODE_UPGRADE, PhaseName.IMAGE_CLEANUP


@pytest.mark.parametrize(
    ("found", "ratio"),
    [
        pytest.param({}, 0.0, id="no status"),
        pytest.param(status("Initializing"), 0.0, id="begun"),
        pytest.param(status("ISODownloading"), begun(PhaseName.ISO_DOWNLOAD), id="first phase completed"),
        pytest.param(status("ImagePreloading", *["ImagePreloading"] * 3), begun(PRELOAD), id="nodes preload"),
        pytest.param(status("ImagePreloading", "ImagePreloaded", "ImagePreloading"), begun(PRELOAD, 0.5), id="one has"),
        pytest.param(
            status("ImagePreloading", "ImagePreloaded"), begun(PRELOAD, 0.5), id="the next one is not recorded"
        ),
        pytest.param(status("NodeUpgrading", *["ImagePreloaded"] * 3), begun(NODES), id="nodes wait"),
        pytest.param(status("NodeUpgrading", "PostDrained", "PostDraining"), begun(NODES, 0.75), id="upgrade"),
        pytest.param(status("NodeUpgrading", "PostDrainFailed", end="Failed"), begun(NODES, 0.8), id="a node failed"),
        pytest.param(status("NodeUpgrading", "Polishing", ""), begun(NODES), id="unknown states"),
        pytest.param(
            status("CleaningUp", "ImageCleaned", "ImageCleaning"), begun(CLEANUP, 0.5), id="images are removed"
        ),
        pytest.param(status("CleanedUp", "ImageCleaned"), 0.99, id="only the end is left"),
        pytest.param(without(PRELOAD, status("NodeUpgrading", "ImagePreloaded")), begun(NODES), id="a phase skipped"),
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
