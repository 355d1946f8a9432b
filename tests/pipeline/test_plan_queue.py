"""Plans that were admitted while something holds the cluster: each kind of holder, the order, the end of the queue."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hack.faults.forwarding import Forwarding
from hack.simulation import Simulation
from tests.support.cluster.holdings import HOLDINGS, RANCHER, STATE, Holding, addon, machine, upgrade
from tests.support.managers.upgrade import Ledger, UpgradeRun, condition, phases_of
from upgrade_manager.api.attempts import UNKNOWN_TIME
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SETTINGS
from upgrade_manager.kube.transport import Request, Response, Transport

pytestmark = pytest.mark.sampled

#: Seconds in which a manager decides.
WHILE = 5.0
DAY = 24 * 3600.0
FIRST, NODE = "UpgradePlan one is in progress", "node-0"
HOOKS: dict[str, Any] = {
    "controlPlaneDrainOptions": {"preDrainHooks": [{"annotation": "management.harvesterhci.io/pre-hook"}]}
}


class Counted(Forwarding):
    """A transport that records requests, without watches."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.requests: list[str] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(f"{request.method} {request.path}")
        return await self._inner.send(request)


async def queued(stage: UpgradeRun, message: str) -> Object:
    """Wait until the plan is in the queue for the holder, and return it."""
    plan = await stage.until_plan(lambda plan: message in condition(plan, "Available")[2])
    assert condition(plan, "Available")[:2] == ("False", "ConcurrentUpgradeBlocked")
    status = objects.status(plan)
    assert (status["display"]["state"], "queuedSince" in status) == ("Queued", True)
    assert objects.condition(plan, "Progressing") == {}
    return plan


async def started(stage: UpgradeRun) -> Object:
    """Wait until the plan has started, and return it."""
    return await stage.until_plan(lambda plan: phases_of(plan)[:1] == ["Initializing"])


@pytest.mark.parametrize("holding", HOLDINGS.values(), ids=HOLDINGS)
async def test_plan_waits_for_a_holder_and_starts_after_it(holding: Holding) -> None:
    async with Simulation(actors=False) as simulation:
        await holding.begin(simulation)
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        async with stage.life():
            plan = await queued(stage, holding.message)
            assert "currentPhase" not in objects.status(plan)
            await asyncio.sleep(WHILE)
            await holding.finish(simulation)
            plan = await stage.until_plan(lambda plan: phases_of(plan)[:1] == ["Initializing"], seconds=WHILE)
            assert "queuedSince" not in objects.status(plan)
            assert [reason for reason, _ in await stage.warnings()][:1] == ["ConcurrentUpgradeBlocked"]


async def test_rancher_holds_a_plan_without_the_hooks_of_an_upgrade() -> None:
    async with Simulation(actors=False) as simulation:
        await RANCHER.begin(simulation)
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        async with stage.life():
            await queued(stage, RANCHER.message)
            # As a frozen upgrade leaves it: the next plan is what ends it.
            await stage.patch_cluster(upgradeStrategy=HOOKS)
            await started(stage)


@pytest.mark.parametrize(
    "holding",
    [
        pytest.param(upgrade("", **{STATE: "Succeeded"}), id="an upgrade that has succeeded"),
        pytest.param(upgrade("", **{STATE: "Failed"}), id="an upgrade that has failed"),
        pytest.param(addon("AddonDeploySuccessful"), id="an addon that is deployed"),
        pytest.param(addon("AddonDisabled"), id="an addon that is disabled"),
        pytest.param(machine("", {"phase": "Running"}), id="a Machine that runs"),
    ],
)
async def test_settled_objects_hold_nothing(holding: Holding) -> None:
    async with Simulation(actors=False) as simulation:
        await holding.begin(simulation)
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        async with stage.life():
            await started(stage)
            assert await stage.events("ConcurrentUpgradeBlocked") == []


async def three(simulation: Simulation) -> list[UpgradeRun]:
    """Create three plans, a second apart."""
    stage = await UpgradeRun.set_up(simulation, name="one")
    stages = [stage, replace(stage, name="two"), replace(stage, name="three")]
    for each in stages:
        await each.create_plan()
        await asyncio.sleep(1.0)
    return stages


async def test_three_plans_start_in_the_order_of_their_creation() -> None:
    async with Simulation("one-node", actors=False) as simulation:
        first, second, third = await three(simulation)
        async with first.life():
            await started(first)
            for waiting in (second, third):
                await queued(waiting, FIRST)
            await first.delete()
            await started(second)
            await queued(third, "UpgradePlan two is in progress")
            await second.delete()
            await started(third)


async def test_later_plan_names_the_one_before_it() -> None:
    async with Simulation(actors=False) as simulation:
        await RANCHER.begin(simulation)
        first, second, third = await three(simulation)
        async with first.life():
            await queued(first, RANCHER.message)
            await queued(second, "UpgradePlan one was created before this one, and starts first")
            await queued(third, "UpgradePlan one was created before this one, and starts first")
            # It is freely deletable.
            await first.delete()
            await queued(second, RANCHER.message)
            await queued(third, "UpgradePlan two was created before this one, and starts first")


async def test_plan_in_the_queue_is_refused_after_a_day() -> None:
    async with Simulation(actors=False) as simulation:
        holding = HOLDINGS["a built-in upgrade"]
        await holding.begin(simulation)
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        async with stage.life():
            plan = await queued(stage, holding.message)
            since = objects.status(plan)["queuedSince"]
            await asyncio.sleep(DAY - 60)
            plan = await queued(stage, holding.message)
            assert objects.status(plan)["queuedSince"] == since
            await asyncio.sleep(120)
            plan = await stage.plan()
        status = objects.status(plan)
        assert (status["currentPhase"], status["display"]["state"]) == ("Failed", "Failed: Refused")
        assert condition(plan, "Progressing")[:2] == ("False", "Refused")
        assert condition(plan, "Degraded")[:2] == ("True", "UpgradeFailed")
        assert condition(plan, "Ready")[:2] == ("False", "Refused")
        assert holding.message in condition(plan, "Degraded")[2]
        assert {"queuedSince", "cleanupPending"}.isdisjoint(status)
        assert objects.finalizers(plan) == []
        # The plan began with its wait, because no phase has begun.
        ended = status["phaseTransitionTimestamps"][0]["phaseTransitionTimestamp"]
        [attempt] = status["attempts"]
        assert (attempt["attempt"], attempt["begin"], attempt["end"]) == (1, since, ended)


async def test_refused_plan_starts_with_its_next_attempt() -> None:
    async with Simulation("one-node", actors=False) as simulation:
        holding = HOLDINGS["a built-in upgrade"]
        await holding.begin(simulation)
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        async with stage.life():
            await queued(stage, holding.message)
            await asyncio.sleep(DAY + 60)
            assert await stage.phase() == "Failed"
            await stage.patch(spec={"attempt": 2})
            await queued(stage, holding.message)
            await holding.finish(simulation)
            plan = await started(stage)
        assert objects.status(plan)["attempt"] == 2
        begins = [entry["begin"] for entry in objects.status(plan)["attempts"]]
        assert [entry["attempt"] for entry in objects.status(plan)["attempts"]] == [1, 2]
        assert begins == sorted(begins)
        assert UNKNOWN_TIME not in begins


@pytest.mark.parametrize(("version", "said"), [("v1.8.2", False), ("v1.9.0", True)])
async def test_recovery_of_vms_is_said_to_be_off_after_an_hour(version: str, *, said: bool) -> None:
    async with Simulation(actors=False) as simulation:
        await HOLDINGS["a node that joins"].begin(simulation)
        client = simulation.client()
        await client.patch(SETTINGS, "server-version", MergePatch({"value": version}))
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        async with stage.life():
            await queued(stage, "Machine fleet-local/joins")
            await asyncio.sleep(3500)
            assert objects.condition(await stage.plan(), "VMRecoveryOff") == {}
            await asyncio.sleep(200)
            assert condition(await stage.plan(), "VMRecoveryOff")[0] == ("True" if said else "")
            await HOLDINGS["a node that joins"].finish(simulation)
            plan = await started(stage)
            assert objects.condition(plan, "VMRecoveryOff") == {}


@pytest.mark.rule("control: an error before the queue is over with the next reconcile that succeeds")
async def test_error_before_the_queue_is_over_in_it() -> None:
    async with Simulation(actors=False) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        permit = stage.refuse("list", "clusters.*")
        await stage.create_plan()
        async with stage.life():
            await stage.until_plan(lambda plan: condition(plan, "Degraded")[:2] == ("True", "ReconcileError"))
            await HOLDINGS["a node that joins"].begin(simulation)
            permit()
            plan = await queued(stage, "Machine fleet-local/joins")
            assert objects.condition(plan, "Degraded") == {}


async def test_plan_in_the_queue_sends_no_requests() -> None:
    async with Simulation(actors=False) as simulation:
        await HOLDINGS["a node that joins"].begin(simulation)
        first, second, _ = await three(simulation)
        counted = Counted(first.ledger)
        first.ledger = Ledger(counted)
        async with first.life():
            await queued(first, "Machine fleet-local/joins")
            await queued(second, "UpgradePlan one was created before this one")
            await asyncio.sleep(WHILE)
            before = len(counted.requests)
            await asyncio.sleep(3600)
            made = counted.requests[before:]
        # The release that runs is read once in ten minutes, after an hour.
        assert [one for one in made if "leases" not in one and "server-version" not in one] == []
