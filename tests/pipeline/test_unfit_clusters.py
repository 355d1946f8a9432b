"""Clusters that are not fit for an upgrade, or take a while to show that they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.bench.in_process import LoopClock
from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.support.cluster.simulate import PACE, Simulate
from tests.support.managers.histories import REPORTS
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, phases_of, started
from upgrade_manager.api.phases import FAILED
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VERSIONS

pytestmark = pytest.mark.sampled

SKIP = "management.harvesterhci.io/skip-garbage-collection-threshold-check"
TOOLKIT = "management.harvesterhci.io/upgrade-toolkit-image"
DAYS = "management.harvesterhci.io/min-certs-expiration-in-day"
#: The API server of the kubeconfig.
MAIN = "10.53.0.1"
FAILURE = "Failed in Initialize: this plan has upgraded neither components nor nodes. Next step: see Degraded"
FULL = {"used_gib": 250}
SILENT = {"node-1": {"answers": False}}


@dataclass(frozen=True, slots=True)
class PacedClock(LoopClock):
    """On the real server a minute takes as long as the scenario's minutes."""

    def monotonic(self) -> float:
        """Return the loop's time in seconds of the scenario."""
        now = asyncio.get_running_loop().time()
        return now / PACE if self.simulation.backend.has_controllers else now


def cluster(*, disks: dict[str, Any] | None = None, **values: Any) -> Scenario:
    return scenarios.load("three-nodes").changed(nodes={"disks": disks or {}}, **values)


@asynccontextmanager
async def paced(
    simulation: Simulation, spec: dict[str, Any] = BY_VERSION, **metadata: Any
) -> AsyncIterator[UpgradeRun]:
    """Run a manager whose minute is the scenario's, and create the plan."""
    stage = await UpgradeRun.set_up(simulation)
    async with replace(stage.life(), clock=PacedClock(simulation)):
        await stage.create_plan(spec, **metadata)
        yield stage


def requests_to_nodes(simulation: Simulation) -> int:
    return len(simulation.kubelets.requests)


async def wait_for(stage: UpgradeRun, words: str) -> None:
    """Wait until the plan reports that it waits for that. Raises TimeoutError."""
    await stage.until_plan(lambda plan: words in condition(plan, "Progressing")[2], seconds=30)


async def fail(simulation: Simulation, **metadata: Any) -> str:
    """Create a plan that fails before it has changed anything, and return the cause."""
    async with paced(simulation, **metadata) as stage:
        plan = await stage.fail()
    events = await stage.events()
    status, reason, cause = condition(plan, "Progressing")
    assert (status, reason) == ("False", "Refused")
    assert phases_of(plan) == ["Initializing", "Failed"]
    assert condition(plan, "Available") == ("False", "Executed", FAILURE)
    assert condition(plan, "Degraded")[:2] == ("True", "UpgradeFailed")
    chosen = [("Normal", "ToolkitImageChosen")] if "toolkitImage" in objects.status(plan) else []
    assert [(event["type"], event["reason"]) for event in events] == [
        ("Normal", "PhaseTransition"),
        *chosen,
        ("Warning", "UpgradeFailed"),
    ]
    assert events[-1]["message"] == f"Upgrade failed: {cause}"
    assert [path for path, _ in stage.ledger.created if not path.endswith(REPORTS)] == []
    return cause


@pytest.mark.servers
async def test_preflight_costs_two_requests_per_node(simulate: Simulate) -> None:
    async with simulate(cluster(api_servers={"10.53.0.2": {"days": 8}})) as simulation:
        async with paced(simulation) as stage:
            await stage.until("ISODownloading")
        assert requests_to_nodes(simulation) == 6
        assert {host: len(times) for host, times in simulation.certificates.asked.items()} == {MAIN: 1, "10.53.0.2": 1}
        assert await stage.events("UpgradeFailed") == []


UNFIT = [
    pytest.param(
        cluster(disks={"node-0": FULL, "node-2": {"image_gc_high_threshold": 30}}),
        {},
        ["node node-0 (87.7 % > 85 %), node node-2 (34.4 % > 30 %)"],
        ["node-1"],
        id="full disks",
    ),
    pytest.param(
        cluster(api_servers={"10.53.0.2": {"days": -1}, "10.53.0.3": {"authority_days": 2}, "10.53.0.4": {}}),
        {},
        ["endpoint 10.53.0.2:443 (expired 20", "endpoint 10.53.0.3:443 (in 1 day, 20", "7 days"],
        ["10.53.0.1", "10.53.0.4"],
        id="expired certificates",
    ),
    pytest.param(
        cluster(
            disks={"node-0": FULL, **SILENT},
            api_servers={"10.53.0.2": {"answers": False}, "10.53.0.3": {"tls": False}, "10.53.0.4": {"since_days": -2}},
        ),
        {},
        [
            "node node-0 (87.7 % > 85 %)",
            "Kubelet did not respond for 1 min: node node-1 (",
            "connection refused",
            "endpoint 10.53.0.2:443 (TLS handshake timed out after 10 s)",
            "endpoint 10.53.0.3:443 (TLS handshake failed: WRONG_VERSION_NUMBER)",
            "endpoint 10.53.0.4:443 (not valid before ",
        ],
        [],
        id="all at once",
    ),
    pytest.param(
        cluster(disks={"node-0": FULL}),
        {SKIP: "please", DAYS: "0", TOOLKIT: "me/my toolkit"},
        [
            f'Annotation {SKIP} is \'please\'. Set it to "true" or "false"',
            f"Annotation {TOOLKIT} is 'me/my toolkit'. Set it to REPOSITORY or REPOSITORY@sha256:DIGEST",
            f"Annotation {DAYS} is '0'. Set it to a whole number of days greater than 0",
        ],
        [],
        id="invalid annotations",
    ),
]


@pytest.mark.rule(
    "api: all invalid annotations are reported together in Initialize",
    "api: Initialize can fail",
    "pipeline: Initialize fails when preflight fails",
    "pipeline: a failed check is final: the plan is Failed with the check's message",
    "pipeline: all checks run, and the message names all that failed",
    "pipeline: a non-boolean value of that annotation fails the check",
    "pipeline: an annotation that is not a positive integer fails the certificate check",
)
@pytest.mark.servers
@pytest.mark.parametrize(("scenario", "annotations", "named", "unnamed"), UNFIT)
async def test_unfit_cluster_fails_the_plan_with_all_causes(
    simulate: Simulate, scenario: Scenario, annotations: dict[str, str], named: list[str], unnamed: list[str]
) -> None:
    async with simulate(scenario) as simulation:
        cause = await fail(simulation, annotations=annotations)
    assert [text for text in named if text not in cause] == []
    assert [text for text in unnamed if text in cause] == []


@pytest.mark.rule(
    "api: waiting is not an error",
    "pipeline: a response within the minute only delays the upgrade",
)
@pytest.mark.servers
async def test_node_unreachable_for_30_s_delays_the_upgrade(simulate: Simulate) -> None:
    scenario = cluster(disks={"node-1": {"unreachable": 30}}, api_servers={"10.53.0.2": {"unreachable": 30}})
    async with simulate(scenario) as simulation:
        async with paced(simulation) as stage:
            await wait_for(stage, "the kubelet of node node-1 (")
            assert condition(await stage.plan(), "Degraded")[0] == "False"
            await stage.until("ISODownloading")
        assert await stage.events("ReconcileError") == []
        assert {event["type"] for event in await stage.events()} == {"Normal"}


async def test_wait_probes_only_silent_nodes_until_it_is_skipped(simulate: Simulate) -> None:
    async with simulate(cluster(disks=SILENT)) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life() as manager:
            await stage.create_plan()
            await wait_for(stage, "node-1")
            writes, before = len(manager.wire.writes), requests_to_nodes(simulation)
            await asyncio.sleep(50)
            assert len(manager.wire.writes) == writes
            assert 4 <= requests_to_nodes(simulation) - before <= 8
            began = asyncio.get_running_loop().time()
            await stage.patch(metadata={"annotations": {SKIP: "true"}})
            await stage.until("ISODownloading")
            assert asyncio.get_running_loop().time() - began < 2


async def test_missing_version_does_not_use_up_the_probes_minute(simulate: Simulate) -> None:
    async with simulate(cluster(disks={"node-1": {"unreachable": 30}})) as simulation:
        client = simulation.client()
        version = await client.get(VERSIONS, "v1.8.0", namespace="harvester-system")
        await client.delete(VERSIONS, "v1.8.0", namespace="harvester-system")
        async with started(simulation) as stage:
            await asyncio.sleep(600)
            metadata = {"name": "v1.8.0", "namespace": "harvester-system"}
            await client.create(VERSIONS, {**version, "metadata": metadata})
            assert await stage.until("ISODownloading", FAILED) == "ISODownloading"
