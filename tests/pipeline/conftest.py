"""A cluster for tests of steps that read and write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.harvester import Harvester

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture
async def cluster() -> AsyncIterator[Harvester]:
    async with asyncio.TaskGroup() as group:
        harvester = Harvester(group)
        await harvester.install()
        yield harvester
