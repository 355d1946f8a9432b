from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import tiers
from tests.support.simulate import embedded, simulate_on
from tests.support.sweep import Sweep

if TYPE_CHECKING:
    from tests.support.simulate import Simulate


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """Return the factory of simulated clusters on the test's API server."""
    if tiers.server_of(request.node) == tiers.REAL:
        return simulate_on(request.getfixturevalue("control_plane"))
    return embedded


@pytest.fixture
def sweep(request: pytest.FixtureRequest) -> Sweep:
    return Sweep(tier=request.config.getoption("tier"))
