"""The breaks of `--break`, as the webhook's checks see them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from hack.demo.breaks import BREAKS
from hack.demo.creation import refusal
from hack.simulation import Simulation
from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.kube.errors import Invalid
from webhook.catalogue import CHECKS
from webhook.check import Subject
from webhook.cluster import LiveReader
from webhook.runner import run_checks

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client

PLAN: dict[str, Any] = {
    "apiVersion": "management.harvesterhci.io/v1beta1",
    "kind": "UpgradePlan",
    "metadata": {"name": "demo"},
    "spec": {"version": "v1.8.0"},
}
REASONS = {
    "degraded-volume": r"^Volume longhorn-system/pvc-\S+ .* is not healthy: .* Longhorn rebuilds its replicas",
    "cordoned-node": r"^Node node-2 is cordoned\. Uncordon it: (?P<remedy>.*)$",
    "single-replica": r"^Volume longhorn-system/pvc-\S+ .* has a single .* a replica: (?P<remedy>.*) \(2\) Undo it ",
}


async def reasons(client: Client) -> list[str]:
    results = await run_checks(CHECKS, Subject.of(PLAN, cluster=LiveReader(client), toolkit=TOOLKIT))
    return [finding.message for result in results for finding in result.findings]


@pytest.mark.parametrize("scale", [0.0, 1.0], ids=["instant", "in time"])
@pytest.mark.parametrize("name", BREAKS)
async def test_broken_object_is_a_reason_until_mended(name: str, scale: float) -> None:
    async with Simulation("three-nodes", scale=scale) as simulation:
        client = simulation.client()
        broken = await BREAKS[name](client)
        (message,) = await reasons(client)
        found = re.search(REASONS[name], message)
        assert found is not None, message
        assert found.groupdict().get("remedy") in {None, broken.remedy}
        await broken.mend()
        assert await reasons(client) == []


@pytest.mark.parametrize(
    ("causes", "printed"),
    [
        ([{"field": "spec", "message": "one"}], 'The UpgradePlan "demo" is invalid: spec: one'),
        (
            [{"field": "spec", "message": "one"}, {"message": "two"}],
            'The UpgradePlan "demo" is invalid: \n* spec: one\n* two',
        ),
        ([], "create UpgradePlan demo: 422"),
    ],
)
def test_refusal_is_printed_as_by_kubectl(causes: list[dict[str, str]], printed: str) -> None:
    details = {"kind": "UpgradePlan", "name": "demo", "causes": causes}
    assert refusal(Invalid("create UpgradePlan demo: 422", details=details)) == printed
