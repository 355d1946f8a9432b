"""Random upgrades: the invariants hold after every write, and every run reaches its expected end.

A failure reports its seed and the command that repeats it.
"""

from __future__ import annotations

import pytest

from tests.support import random_run
from tests.support.sweep import shares

#: So many runs, dealt out to so many tests, which may run at the same time.
RUNS, SHARES = 200, 20


@pytest.mark.rule(
    "api: currentPhase is a phase value",
    "api: phaseTransitionTimestamps are append-only",
    "api: phase values are recorded in order",
    "api: a node's state group never decreases",
    "api: every created object has the plan as a label",
    "api: every created object has one of six components as a label",
    "api: every created object has the plan as controlling owner",
    "pipeline: only the reconciler writes a plan's status",
)
@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", shares(SHARES))
def test_random_run_keeps_the_rules_and_leaves_nothing(share: int) -> None:
    for seed in range(share, RUNS, SHARES):
        result = random_run.run_seed(seed)
        assert not result.faults, str(result)
