"""Commands copied from a screen of 80 columns, and their undos: the cluster is as it was, and the plan's end agrees."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_remedies import SHELLS, by_blocker, commands, in_shell, set_up, status_at_80, undos
from tests.support.cluster.harvester import Harvester
from tests.support.cluster.served import Served, served
from tests.support.managers import remedy_samples
from tests.support.programs.virtctl import install_virtctl
from upgrade_manager.api.advised import with_advised
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    LONGHORN_VOLUMES,
    MANAGED_CHARTS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PROVISIONING_CLUSTERS,
    UPGRADE_PLANS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    VIRTUAL_MACHINES,
)
from upgrade_manager.pipeline.ending import advice, settlement

pytestmark = [
    pytest.mark.real_loop,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]

CONFIGURATION: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "a-policy"},
    "webhooks": [
        {
            "name": name,
            "clientConfig": {"url": "https://192.0.2.1/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [],
        }
        for name in ("other.example.com", "policy.example.com")
    ],
}
MACHINE = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}},
}
#: The kinds whose objects the commands change.
CHANGED = (
    LONGHORN_VOLUMES,
    MANAGED_CHARTS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PROVISIONING_CLUSTERS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    VIRTUAL_MACHINES,
)
UNDOABLE = {name: found for name, found in remedy_samples.remedies().items() if any(one.undo for one in found)}


async def prepare(cluster: Served) -> None:
    """Let the cluster be as the remedies found it."""
    client = cluster.client
    for node, changed in (
        (remedy_samples.NODE, {"spec": {"taints": [remedy_samples.TAINT]}}),
        (remedy_samples.NODE, {"metadata": {"labels": {"kubernetes.io/hostname": "other"}}}),
        (remedy_samples.CORDONED, {"spec": {"unschedulable": True}}),
        (remedy_samples.EXCLUDED, {"metadata": {"labels": {remedy_samples.EXCLUDING: "disabled"}}}),
    ):
        await client.patch(NODES, node, MergePatch(changed))
    for budget in (remedy_samples.BUDGET, remedy_samples.ILL_BUDGET):
        await client.create(POD_DISRUPTION_BUDGETS, budget, namespace="default")
    for volume in (remedy_samples.VOLUME, remedy_samples.MANY_REPLICAS):
        typed = {"apiVersion": LONGHORN_VOLUMES.api_version, "kind": LONGHORN_VOLUMES.kind, **volume}
        await client.create(LONGHORN_VOLUMES, typed)
    chart = MergePatch({"spec": {"paused": True}})
    await client.patch(MANAGED_CHARTS, "harvester", chart, namespace="fleet-local")
    strategy = MergePatch({"spec": {"rkeConfig": {"upgradeStrategy": remedy_samples.STRATEGY}}})
    await client.patch(PROVISIONING_CLUSTERS, "local", strategy, namespace="fleet-local")
    machine = await client.create(VIRTUAL_MACHINES, MACHINE)
    running = {**machine, "status": {"printableStatus": "Running"}}
    await client.update(VIRTUAL_MACHINES, running, subresource="status")
    await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
    install_virtctl(cluster.kubeconfig.parent)


@asynccontextmanager
async def prepared(folder: Path) -> AsyncIterator[tuple[Served, Harvester]]:
    """Serve a cluster as the remedies found it, and provide the manager's contexts of it."""
    async with served(folder) as cluster, asyncio.TaskGroup() as group:
        await set_up(cluster)
        await prepare(cluster)
        home = Harvester(group)
        home.client = cluster.client
        yield cluster, home


async def snapshot(cluster: Served) -> dict[str, Any]:
    """Return what users set in the objects, by kind and name."""
    found: dict[str, Any] = {}
    for resource in CHANGED:
        for one in (await cluster.client.list(resource)).items:
            found[f"{resource.kind} {objects.qualified_name(one)}"] = _kept(one)
    return found


def _kept(obj: Object) -> dict[str, Any]:
    spec = dict(objects.spec(obj))
    strategy = objects.value(obj, "spec", "rkeConfig", "upgradeStrategy")
    if isinstance(strategy, dict):
        # A hook that is added again is the last one: Rancher waits for all of them, in no order.
        options = objects.mapping(strategy, "workerDrainOptions")
        hooks = sorted(map(str, objects.items(options, "preDrainHooks")))
        spec["rkeConfig"] = {**spec["rkeConfig"], "upgradeStrategy": {**strategy, "workerDrainOptions": hooks}}
    status = objects.status(obj).get("printableStatus")
    return {"labels": objects.labels(obj), "spec": spec, "webhooks": obj.get("webhooks"), "status": status}


async def still_changed(cluster: Served, home: Harvester) -> list[str]:
    """Return the undos that the end of the plan lists."""
    ctx = home.context(await cluster.client.get(UPGRADE_PLANS, "demo"))
    ctx.status["advised"] = with_advised(None, remedy_samples.blockers())
    return [one.command for one in await advice.still_changed(ctx)]


async def run(cluster: Served, shell: str, lines: list[str]) -> None:
    for line in lines:
        ran = await in_shell(cluster, shell, line)
        assert ran.code == 0, (line, ran)


def changing(name: str, lines: list[str]) -> list[str]:
    """Return the copied commands that change something, with those that save it before."""
    undoable = {one.command for one in UNDOABLE[name] if one.undo}
    return [line for line in commands(lines) if line in undoable or line.startswith("(F=")]


@pytest.mark.full
@pytest.mark.rule("blockers: what a remedy changes is given back by the command beside it")
@pytest.mark.parametrize("shell", SHELLS)
async def test_copied_commands_change_and_give_back(tmp_path: Path, shell: str) -> None:
    async with prepared(tmp_path) as (cluster, home):
        listed, before = by_blocker((await status_at_80(cluster)).out), await snapshot(cluster)
        assert await still_changed(cluster, home) == []
        for name, remedies in UNDOABLE.items():
            lines = listed[name]
            assert undos(lines) == [one.undo for one in remedies if one.undo]
            await run(cluster, shell, changing(name, lines))
            assert await snapshot(cluster) != before, name
            assert await still_changed(cluster, home) == undos(lines), name
            await run(cluster, shell, undos(lines))
            assert await snapshot(cluster) == before, name
            assert await still_changed(cluster, home) == [], name


@pytest.mark.full
@pytest.mark.rule("blockers: what a remedy changes is given back by the command beside it")
@pytest.mark.parametrize("shell", SHELLS)
async def test_end_of_a_plan_lists_what_gives_everything_back(tmp_path: Path, shell: str) -> None:
    async with prepared(tmp_path) as (cluster, home):
        listed, before = by_blocker((await status_at_80(cluster)).out), await snapshot(cluster)
        for name in UNDOABLE:
            await run(cluster, shell, changing(name, listed[name]))
        ctx = home.context(await cluster.client.get(UPGRADE_PLANS, "demo"))
        ctx.status["advised"] = with_advised(None, remedy_samples.blockers())
        count = len([one for remedies in UNDOABLE.values() for one in remedies if one.undo])
        summary = f"{count} changes that remedies advised were not given back at the end; see nextSteps"
        assert await settlement.name_settled(ctx) == summary
        await cluster.set(currentPhase="Succeeded", blockers=None, nextSteps=ctx.status["nextSteps"])
        shown = (await status_at_80(cluster)).out.partition("\nNEXT\n")[2].splitlines()
        lines = [line for line in shown if line in {one["command"] for one in ctx.status["nextSteps"]}]
        assert len(lines) == count
        await run(cluster, shell, lines)
        assert await snapshot(cluster) == before


def webhooks(*names: str) -> dict[str, list[str]]:
    """Return the commands of webhooks that refuse: to save their configurations, to delete them, and the undo."""
    found = {}
    for name in names:
        _, save, delete = remedy_samples.refused(f'failed calling webhook "{name}": connection refused')
        found[name] = [save.command, delete.command, delete.undo]
    return found


def saves(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("webhook-*")}


@pytest.mark.rule("blockers: an object that is saved is not saved a second time in the same file")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.full
async def test_each_webhook_is_saved_once_in_its_own_file(tmp_path: Path, shell: str) -> None:
    named = {"a-policy": "policy.example.com", "b-policy": "b.example.com"}
    async with served(tmp_path) as cluster:
        for name, webhook in named.items():
            [other, _] = CONFIGURATION["webhooks"]
            manifest = {**CONFIGURATION, "metadata": {"name": name}, "webhooks": [{**other, "name": webhook}]}
            await cluster.client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, manifest)
        before = await snapshot(cluster)
        lines = webhooks(*named.values())
        for save, delete, _ in lines.values():
            await run(cluster, shell, [save, delete])
        files = saves(tmp_path)
        assert sorted(files) == ["webhook-b.example.com.yaml", "webhook-policy.example.com.yaml"]
        for name, (save, _, _) in lines.items():
            again = await in_shell(cluster, shell, save)
            assert (again.code, again.out) == (1, f"webhook-{name}.yaml exists: move it first\n")
        assert saves(tmp_path) == files
        for _, _, undo in lines.values():
            await run(cluster, shell, [undo])
        assert await snapshot(cluster) == before


@pytest.mark.rule("blockers: an object that is saved is not saved a second time in the same file")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.full
async def test_save_that_failed_is_repeated(tmp_path: Path, shell: str) -> None:
    """The first attempt leaves a file without content: no configuration lists the webhook yet."""
    async with served(tmp_path) as cluster:
        [(save, delete, undo)] = webhooks("policy.example.com").values()
        assert (await in_shell(cluster, shell, save)).code != 0
        await cluster.client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
        before = await snapshot(cluster)
        await run(cluster, shell, [save, delete, undo])
        assert await snapshot(cluster) == before
