"""The net writes of the manager in a healthy upgrade, as listings that name the row of each line.

`GOLDEN=write python -m pytest tests/pipeline/test_net_writes.py` writes them again.
"""

from __future__ import annotations

import pytest

from tests.support.managers.written_by_manager import written
from tests.support.toolkit.net_write_goldens import golden


@pytest.mark.full
@pytest.mark.parametrize("scenario", ["three-nodes", "one-node"])
async def test_net_writes_of_the_manager(scenario: str) -> None:
    lines = await written(scenario)
    assert lines == golden(f"manager-{scenario}", lines)
