"""What an object becomes when it is created."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


async def test_a_created_object_gets_a_uid_and_a_version(api: BareApi) -> None:
    answer = await api.admin.post(api.path("configmaps"), {"metadata": {"name": "one"}, "data": {"a": "b"}})
    assert answer.status == 201
    assert answer.body["metadata"]["uid"]
    assert answer.body["metadata"]["resourceVersion"]
