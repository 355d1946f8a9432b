"""What `--break` breaks, as the webhook's checks see it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from hack.demo.breaks import BREAKS, LONGHORN_TIMEOUT
from hack.demo.creation import break_cluster, create_plan, refusal
from hack.demo.programs import DemoError
from hack.simulation import Simulation
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.programs.polling import eventually
from upgrade_manager.display.screen import Lines
from upgrade_manager.kube.errors import Invalid
from upgrade_manager.kube.resources import LONGHORN_VOLUMES
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
SCREEN = Lines(lambda _: None)
REASONS = {
    "degraded-volume": r"^Volume longhorn-system/pvc-\S+ .* is degraded\. Wait until Longhorn has rebuilt its replicas",
    "cordoned-node": r"^Node node-2 is cordoned\. Run (?P<remedy>.*)$",
    "single-replica": r"^Volume longhorn-system/pvc-\S+ .* has a single replica, .* Add a replica: (?P<remedy>.*)$",
}


async def reasons(client: Client) -> list[str]:
    results = await run_checks(CHECKS, Subject.of(PLAN, cluster=LiveReader(client), toolkit=TOOLKIT))
    return [finding.message for result in results for finding in result.findings]


def test_each_break_has_a_reason() -> None:
    assert list(BREAKS) == list(REASONS)


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


async def test_failed_replica_is_rebuilt_only_on_a_disk_that_fits() -> None:
    async with Simulation("three-nodes") as simulation:
        client = simulation.client()
        broken = await BREAKS["degraded-volume"](client)

        async def is_sound() -> bool:
            volumes = (await client.list(LONGHORN_VOLUMES)).items
            return all(volume["status"]["robustness"] == "healthy" for volume in volumes)

        with pytest.raises(TimeoutError):
            await eventually(is_sound, seconds=LONGHORN_TIMEOUT)
        await broken.mend()
        assert await is_sound()


async def test_breaks_have_objects_of_their_own() -> None:
    async with Simulation("three-nodes") as simulation:
        client = simulation.client()
        broken = await break_cluster(client, list(BREAKS), SCREEN)
        assert len(await reasons(client)) == len(BREAKS)
        for one in broken:
            await one.mend()
        assert await reasons(client) == []


async def test_cluster_without_volumes_has_nothing_to_break() -> None:
    async with Simulation("one-node") as simulation:
        await simulation.client().delete_collection(LONGHORN_VOLUMES, namespace="longhorn-system")
        with pytest.raises(DemoError, match="0 volumes are attached, too few to break"):
            await BREAKS["single-replica"](simulation.client())


async def test_accepted_plan_of_a_broken_cluster_is_an_error() -> None:
    """No webhook is registered."""
    async with Simulation("three-nodes") as simulation:
        client = simulation.client()
        broken = await break_cluster(client, ["cordoned-node"], SCREEN)
        with pytest.raises(DemoError, match="the broken cluster accepted the plan"):
            await create_plan(client, PLAN, broken, SCREEN)


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
