"""A cluster that kubectl can reach, new for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import kubectl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[kubectl.Cluster]:
    async with kubectl.cluster(tmp_path) as running:
        yield running
