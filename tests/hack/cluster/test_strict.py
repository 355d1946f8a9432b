"""Unknown fields in writes, in front of a server with a strict schema."""

from __future__ import annotations

from typing import Any

import pytest

from hack.cluster.strict import Strict
from tests.support.apiserver import make_server
from tests.support.definitions import DEFINITIONS
from tests.support.wire import Wire
from upgrade_manager.api.crd import crd_manifest

PLANS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans"


@pytest.fixture
async def wire() -> Wire:
    wire = Wire(Strict(make_server()))
    assert (await wire.post(DEFINITIONS, crd_manifest())).status == 201
    return wire


def plan(**spec: Any) -> dict[str, Any]:
    named = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "metadata": {"name": "p"}}
    return named | {"spec": {"version": "v1.8.0"} | spec}


async def test_a_field_that_the_kind_does_not_have_is_refused(wire: Wire) -> None:
    answer = await wire.post(PLANS, plan(colour="red"))
    assert answer.status == 400
    assert 'unknown field "spec.colour"' in answer.body["message"]


async def test_a_patch_is_judged_too(wire: Wire) -> None:
    assert (await wire.post(PLANS, plan())).status == 201
    assert (await wire.patch(f"{PLANS}/p", {"spec": {"colour": "red"}})).status in {400, 422}


async def test_who_asks_for_something_else_gets_it(wire: Wire) -> None:
    assert (await wire.post(PLANS, plan(colour="red"), fieldValidation="Ignore")).status == 201


async def test_reads_pass_as_they_are(wire: Wire) -> None:
    assert (await wire.get(PLANS)).status == 200
