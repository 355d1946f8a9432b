"""Unknown fields in writes, in front of a server with a strict schema."""

from __future__ import annotations

from typing import Any

import pytest

from hack.cluster.strict import Strict
from tests.support.server.apiserver import DEFINITIONS, make_server
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.crd import crd_manifest

PLANS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans"


@pytest.fixture
async def wire() -> RawClient:
    wire = RawClient(Strict(make_server()))
    assert (await wire.post(DEFINITIONS, crd_manifest())).status == 201
    return wire


def plan(**spec: Any) -> dict[str, Any]:
    named = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "metadata": {"name": "p"}}
    return named | {"spec": {"version": "v1.8.0"} | spec}


async def test_unknown_field_is_refused(wire: RawClient) -> None:
    response = await wire.post(PLANS, plan(colour="red"))
    assert response.status == 400
    assert 'unknown field "spec.colour"' in response.body["message"]


async def test_patch_is_validated_strictly(wire: RawClient) -> None:
    assert (await wire.post(PLANS, plan())).status == 201
    assert (await wire.patch(f"{PLANS}/p", {"spec": {"colour": "red"}})).status in {400, 422}
