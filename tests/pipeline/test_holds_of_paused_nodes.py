"""The only node, which was in pauseNodes first, so that its Job is older than the points at which it holds."""

from __future__ import annotations

import pytest

from tests.pipeline.test_holds import assert_held, let_past, with_option
from tests.pipeline.test_plan_pauses import DEFAULTS, upgrade
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import UpgradeRun, node_states
from upgrade_manager.api.attribution import signed
from upgrade_manager.api.keys import ANNOTATION_HOLDS, ANNOTATION_LAST_CHANGED_BY, HARVESTER_SYSTEM
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import JOBS

pytestmark = pytest.mark.full
DRAIN, REBOOT = "Drain", "Reboot"


async def job(stage: UpgradeRun) -> Object:
    name = "upgrade-node-upgrade-single-node-upgrade-node-0"
    return await stage.client.get(JOBS, name, namespace=HARVESTER_SYSTEM)


async def let_begin(stage: UpgradeRun, points: list[str]) -> None:
    """Take the node from pauseNodes, and let it hold at these points, as carol."""
    option = {"pauseBefore": points}
    signature = signed("carol", UpgradePlanSpec.read(with_option(**option)), {})
    metadata = {"annotations": {ANNOTATION_LAST_CHANGED_BY: signature}}
    await stage.patch(metadata=metadata, spec={"nodeUpgradeOption": {"pauseNodes": None, **option}})


@pytest.mark.rule("control: a Job that was suspended before pauseBefore was set holds as one that begins afterwards")
@pytest.mark.parametrize("points", [[DRAIN, REBOOT], [REBOOT], [DRAIN]], ids=["both", "reboot", "drain"])
@pytest.mark.parametrize("kind", ["harvester", "own"])
@pytest.mark.thin
async def test_suspended_job_of_the_only_node_holds(kind: str, points: list[str]) -> None:
    options = OWN if kind == "own" else DEFAULTS
    async with upgrade("one-node", with_option(pauseNodes=["node-0"]), options=options) as stage:
        await stage.until_node("UpgradePaused", node="node-0")
        before = await job(stage)
        assert objects.spec(before)["suspend"]
        assert ANNOTATION_HOLDS not in objects.annotations_of(before)
        await let_begin(stage, points)
        for number, point in enumerate(points):
            await assert_held(stage, "node-0", point, who="bob" if number else "carol")
            # Only a Job that is about to begin is replaced, and Harvester's toolkit does not hold by itself.
            is_replaced, found = point == REBOOT and kind == "own", await job(stage)
            assert (objects.uid(found) != objects.uid(before)) is is_replaced
            assert (objects.annotations_of(found).get(ANNOTATION_HOLDS) == REBOOT) is is_replaced
            assert bool(objects.spec(found).get("suspend")) is not is_replaced
            state = "SingleNodeUpgrading" if is_replaced else "UpgradePaused"
            assert node_states(await stage.plan()) == {"node-0": state}
            await let_past(stage, f"node-0:{point}")
        await stage.until("NodeUpgraded", "CleaningUp", "Succeeded")
        assert (objects.uid(await job(stage)) == objects.uid(before)) is not is_replaced
