from __future__ import annotations

import pytest

from tests.support.sweep import Sweep


@pytest.fixture
def sweep(request: pytest.FixtureRequest) -> Sweep:
    return Sweep(tier=request.config.getoption("tier"))
