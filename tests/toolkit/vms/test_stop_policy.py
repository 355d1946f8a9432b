from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.cluster_reader import create, named
from tests.support.cluster.vm_world import FREE, vm_world
from tests.support.toolkit.toolkit import PLAN, ToolkitWorld
from upgrade_manager.api.keys import ANNOTATION_INVALID_POLICIES, ANNOTATION_ON_MIGRATION_FAILURE, HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, UPGRADE_PLANS, VIRTUAL_MACHINES, Resource
from upgrade_manager.toolkit.run.context import ToolkitContext
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


async def reported(
    world: ToolkitWorld, context: ToolkitContext, value: str = "", *, stranded: bool = True
) -> str | None:
    """Let the Job decide once about a VM with that annotation; return what the Job reports then."""
    marks = MergePatch({"metadata": {"annotations": {ANNOTATION_ON_MIGRATION_FAILURE: value or None}}})
    await world.client.patch(VIRTUAL_MACHINES, "free", marks, namespace="default")
    vms = await vm_stop.read(context, await vms_of_node(context))
    assert await stop_policy.to_stop(context, vms if stranded else []) == []
    found = await world.client.get(JOBS, "drain", namespace=HARVESTER_SYSTEM)
    return objects.annotations_of(found).get(ANNOTATION_INVALID_POLICIES)


async def create_job(world: ToolkitWorld) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "apply", "image": "toolkit"}]}
    job = named("drain", HARVESTER_SYSTEM, spec={"suspend": True, "template": {"spec": pod}})
    await create(world.client, JOBS, job)


@pytest.mark.rule("nodes: an invalid policy of a VM is named where the VM holds up its node, as by an event")
@pytest.mark.parametrize("stranded", [True, False], ids=["stranded", "migrating again"])
async def test_job_names_an_invalid_policy_until_it_is_corrected(tmp_path: Path, *, stranded: bool) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await create_job(world)
        context = world.context(job="drain")
        assert await reported(world, context, "stop") == '{"default/free":"stop"}'
        assert await reported(world, context, "Wait", stranded=stranded) is None
        assert await reported(world, context, "no") == '{"default/free":"no"}'


async def test_report_of_an_earlier_pod_is_removed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await create_job(world)
        assert await reported(world, world.context(job="drain"), "stop") == '{"default/free":"stop"}'
        context, read = world.context(job="drain"), Counter[str]()
        find = Client.find

        async def count(self: Client, resource: Resource, *given: Any, **options: Any) -> Any:
            read[resource.plural] += 1
            return await find(self, resource, *given, **options)

        monkeypatch.setattr(Client, "find", count)
        for stranded in (False, False, True, True):
            assert await reported(world, context, stranded=stranded) is None
        assert read["jobs"] == 1


async def test_report_that_was_not_removed_is_removed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await create_job(world)
        context = world.context(job="drain")
        assert await reported(world, context, "stop") == '{"default/free":"stop"}'

        async def refuse(*_: Any, **__: Any) -> Any:
            raise Transient("no answer")

        with monkeypatch.context() as broken:
            broken.setattr(Client, "find", refuse)
            assert await stop_policy.to_stop(context, []) == []
        assert await reported(world, context, stranded=False) is None
