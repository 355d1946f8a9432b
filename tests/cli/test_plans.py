"""Which plan a command is about, and what it reports where none can be read."""

from __future__ import annotations

from typing import Any

import pytest

from hack.faults.rules import Delay, Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.sessions import session
from tests.support.managers.displayed import MANIFEST, at, plan, times
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.cli.plans import choose, read_pace, read_plans
from upgrade_manager.cli.session import CommandError
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        pytest.param(Refuse(status=403, reason="Forbidden"), "list upgradeplans.* Check", id="forbidden"),
        pytest.param(Refuse(status=401, reason="Unauthorized"), "401 Unauthorized.* Check", id="unauthorized"),
        pytest.param(
            Refuse(status=404, reason="NotFound"), "CRD not found. Run kubectl apply -k deploy/crds", id="no CRD"
        ),
        pytest.param(Refuse(status=500, reason="InternalError"), "500 InternalError", id="broken"),
        pytest.param(Delay(least=60, most=60), "no response within 15 s", id="silent"),
    ],
)
async def test_plans_that_cannot_be_read_give_one_sentence(action: Refuse | Delay, reason: str) -> None:
    async with Simulation(actors=False) as simulation:
        simulation.middleware.add(Rule(match=Match(resource="upgradeplans*"), action=action))
        with pytest.raises(CommandError, match=f"^API server https://x: .*{reason}") as caught:
            await read_plans(session(simulation), "")
    assert "\n" not in str(caught.value)


def named(name: str, minute: int, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "creationTimestamp": at(60 * minute)}, "status": plan(**status)["status"]}


QUEUED = {"queuedSince": at(0)}
RUNNING, FAILED = {"currentPhase": "NodeUpgrading"}, {"currentPhase": "Failed"}


@pytest.mark.rule("status: the newest plan that has not ended is shown, else the newest")
@pytest.mark.parametrize(
    ("plans", "chosen"),
    [
        pytest.param([named("a", 1, **FAILED), named("b", 2, **FAILED)], "b", id="the newest of those that have ended"),
        pytest.param([named("a", 1, **RUNNING), named("b", 2, **FAILED)], "a", id="the running one"),
        pytest.param([named("a", 1, **RUNNING), named("b", 2, **QUEUED)], "a", id="not the one that waits for it"),
        pytest.param([named("a", 1, **FAILED), named("b", 2), named("c", 1)], "b", id="one without a status"),
        pytest.param([{"metadata": None}, named("a", 1, **FAILED)], "", id="one without metadata"),
    ],
)
async def test_newest_plan_that_has_not_ended_is_chosen(plans: list[dict[str, Any]], chosen: str) -> None:
    async with Simulation(actors=False) as simulation:
        assert objects.name(choose(session(simulation), plans, "")) == chosen
        assert objects.name(choose(session(simulation), plans[::-1], "")) == chosen


@pytest.mark.parametrize(("name", "requests"), [("", 1), ("demo", 2)], ids=["without a name", "with a name"])
async def test_plans_are_listed_once_without_a_name(name: str, requests: int) -> None:
    async with Simulation(actors=False) as simulation:
        await simulation.apply(MANIFEST)
        ended = {"currentPhase": "Succeeded", "phaseTransitionTimestamps": times(*PHASE_VALUES[:2], step=60)}
        await simulation.apply(MANIFEST | {"metadata": {"name": "earlier"}})
        patch = MergePatch({"status": ended})
        await simulation.client().patch(UPGRADE_PLANS, "earlier", patch, subresource="status")
        user = session(simulation)
        plans = await read_plans(user, name)
        pace = await read_pace(user, choose(user, plans, name), plans, name)
        assert pace.seconds == {"Initialize": 60.0}
        assert simulation.middleware.counts.total(user_agent="test", verb="list") == requests
