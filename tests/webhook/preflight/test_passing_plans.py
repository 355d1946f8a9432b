"""Each plan on each cluster: preflight passes the plans that start, and refuses those that are refused later."""

from __future__ import annotations

import pytest

from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun
from tests.support.webhook.passing_plans import CLUSTERS, PLANS, add_releases, refusal
from tests.support.webhook.surroundings import failures, gate

#: Starts although preflight refuses it: the plan is created without the checks of the webhook.
SKIPS_WEBHOOK = "no webhook"


def test_table_has_40_plans_and_10_clusters() -> None:
    assert (len(PLANS), len(CLUSTERS)) == (40, 10)


@pytest.mark.rule("admission: preflight passes a plan that the API server, the webhook and Initialize accept")
@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.thin
@pytest.mark.full
async def test_plan_starts_if_and_only_if_it_passes(name: str) -> None:
    wrong: dict[str, object] = {}
    started = 0
    async with Simulation(CLUSTERS[name].scenario) as simulation:
        await add_releases(simulation)
        await CLUSTERS[name].change(simulation)
        stage = await UpgradeRun.set_up(simulation, name="demo")
        async with stage.life():
            for special, plan in PLANS.items():
                failed = failures(await gate(simulation, plan))
                refused = await refusal(stage, plan)
                started += not refused
                passes_wrongly, fails_wrongly = refused and not failed, failed and not refused
                if passes_wrongly or (fails_wrongly and special != SKIPS_WEBHOOK):
                    wrong[special] = (failed, refused)
    assert wrong == {}
    assert started == CLUSTERS[name].starts
