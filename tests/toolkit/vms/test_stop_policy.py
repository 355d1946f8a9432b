from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.cluster_reader import create, named
from tests.support.cluster.vm_world import FREE, vm_world
from tests.support.toolkit.toolkit import PLAN
from upgrade_manager.api.keys import ANNOTATION_INVALID_POLICIES, ANNOTATION_ON_MIGRATION_FAILURE, HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, UPGRADE_PLANS, VIRTUAL_MACHINES
from upgrade_manager.toolkit.vms import stop_policy, vm_stop
from upgrade_manager.toolkit.vms.vm_shutdown import vms_of_node

#: The uid of a plan that had the plan's name before.
EARLIER: dict[str, Any] = {"plan_uid": "of-an-earlier-plan"}


@pytest.mark.rule(
    "control: a Job whose plan was deleted or replaced stops no VM, and does not reboot from a hold",
    "nodes: a VM whose migration fails is stopped by its user, by its annotation or by Stop alone",
)
@pytest.mark.parametrize(
    ("kind", "option", "annotation", "changes", "stopped"),
    [
        pytest.param("own", None, None, {}, False, id="own-by-default"),
        pytest.param("own", "Stop", None, {}, True, id="own-stop"),
        pytest.param("own", None, "Stop", {}, True, id="annotation"),
        pytest.param("harvester", None, None, {}, True, id="harvester"),
        pytest.param(None, None, None, {}, False, id="unknown-kind"),
        pytest.param(None, "Stop", None, {}, True, id="unknown-kind-stop"),
        pytest.param("own", "Stop", None, EARLIER, False, id="stop-of-another-plan"),
        pytest.param("own", None, "Stop", EARLIER, False, id="annotation-beside-another-plan"),
        pytest.param(None, None, None, EARLIER, False, id="new-plan-of-that-name"),
        pytest.param("own", "Stop", "Stop", {"plan": "absent"}, False, id="deleted"),
    ],
)
async def test_policy_decides_which_vms_are_stopped(
    tmp_path: Path,
    kind: str | None,
    option: str | None,
    annotation: str | None,
    changes: dict[str, Any],
    *,
    stopped: bool,
) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        image = {"repository": "me/own", "tag": "v9", "kind": kind} if kind else None
        status = MergePatch({"status": {"toolkitImage": image}})
        await world.client.patch(UPGRADE_PLANS, PLAN, status, subresource="status")
        spec = MergePatch({"spec": {"nodeUpgradeOption": {"onMigrationFailure": option}}})
        await world.client.patch(UPGRADE_PLANS, PLAN, spec)
        marks = MergePatch({"metadata": {"annotations": {ANNOTATION_ON_MIGRATION_FAILURE: annotation}}})
        await world.client.patch(VIRTUAL_MACHINES, "free", marks, namespace="default")
        uid = objects.uid(await world.client.get(UPGRADE_PLANS, PLAN))
        context = world.context(**({"plan_uid": uid} | changes))
        vms = await vm_stop.read(context, await vms_of_node(context))
        assert len(vms) == 1
        assert bool(await stop_policy.to_stop(context, vms)) is stopped


@pytest.mark.rule("nodes: an invalid policy of a VM is named where the VM holds up its node, as by an event")
async def test_job_names_an_invalid_policy_until_it_is_corrected(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        pod = {"restartPolicy": "Never", "containers": [{"name": "apply", "image": "toolkit"}]}
        job = named("drain", HARVESTER_SYSTEM, spec={"suspend": True, "template": {"spec": pod}})
        await create(world.client, JOBS, job)
        context = world.context(job="drain")
        for value, reported in (("stop", '{"default/free":"stop"}'), ("Wait", None), ("no", '{"default/free":"no"}')):
            marks = MergePatch({"metadata": {"annotations": {ANNOTATION_ON_MIGRATION_FAILURE: value}}})
            await world.client.patch(VIRTUAL_MACHINES, "free", marks, namespace="default")
            vms = await vm_stop.read(context, await vms_of_node(context))
            assert await stop_policy.to_stop(context, vms) == []
            found = await world.client.get(JOBS, "drain", namespace=HARVESTER_SYSTEM)
            assert objects.annotations_of(found).get(ANNOTATION_INVALID_POLICIES) == reported
