"""The objects that the manager creates, as an API server takes them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.harvester import Harvester

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def cluster() -> AsyncIterator[Harvester]:
    async with asyncio.TaskGroup() as group:
        harvester = Harvester(group)
        await harvester.install()
        yield harvester
