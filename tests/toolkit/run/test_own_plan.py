from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.toolkit import PLAN, toolkit_world
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.toolkit.run.own_plan import own_plan, wanted_plan


@pytest.mark.rule("control: a plan of another uid counts as deleted, and a Job without a uid finds its plan by name")
@pytest.mark.parametrize(
    ("name", "uid", "deletes", "exists", "is_wanted"),
    [
        pytest.param(PLAN, "{uid}", False, True, True, id="its-plan"),
        pytest.param(PLAN, "", False, True, True, id="job-of-an-earlier-manager"),
        pytest.param(PLAN, "of-an-earlier-plan", False, False, False, id="another-plan"),
        pytest.param("absent", "{uid}", False, False, False, id="deleted"),
        pytest.param("", "", False, False, False, id="without-a-plan"),
        pytest.param(PLAN, "{uid}", True, True, False, id="in-deletion"),
    ],
)
async def test_plan_is_found_by_name_and_uid(
    tmp_path: Path,
    name: str,
    uid: str,
    *,
    deletes: bool,
    exists: bool,
    is_wanted: bool,
) -> None:
    async with toolkit_world(tmp_path) as world:
        plan = await world.client.get(UPGRADE_PLANS, PLAN)
        if deletes:
            await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch({"metadata": {"finalizers": ["example.com/a"]}}))
            await world.client.delete(UPGRADE_PLANS, PLAN)
        context = world.context(plan=name, plan_uid=uid.format(uid=objects.uid(plan)))
        assert (await own_plan(context) is not None, await wanted_plan(context) is not None) == (exists, is_wanted)
