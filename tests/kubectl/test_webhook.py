"""The admission webhook as kubectl shows it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.crds.foreign import foreign_crds
from tests.support.cluster.kubectl import PLANS, Cluster, manifest
from tests.support.webhook.kubectl_webhook import CONFIGURATIONS, MANIFEST, Webhook, webhook
from tests.support.webhook.webhook_certificates import RENEWAL
from upgrade_manager.api.keys import ANNOTATION_ALLOW_DELETION as ALLOW
from upgrade_manager.api.keys import ANNOTATION_SKIP_WEBHOOK
from upgrade_manager.api.spec import MAX_NODES
from upgrade_manager.kube.resources import UPGRADES
from webhook.certificates.rotation import CONFIGURATION

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]

IMAGE = (
    "VirtualMachineImage other/iso: the upgrade repository can only mount images in namespace harvester-system. "
    "Import the ISO there, then create a plan with that image"
)
NOT_READY = (
    "Node node-1 is not Ready: kubelet stopped. (1) Check the console of node node-1, and start it "
    "(2) Show its conditions: kubectl describe node node-1"
)
FINALIZER = "management.harvesterhci.io/upgradeplan-cleanup"


@pytest.fixture
async def hook(cluster: Cluster) -> AsyncIterator[Webhook]:
    async with webhook(cluster) as running:
        yield running


def progressing(status: str, phase: str = "ImagePreloading") -> dict[str, Any]:
    condition = {"type": "Progressing", "status": status, "reason": "Test", "message": ""}
    return {"currentPhase": phase, "conditions": [condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}


def broken_plan(**metadata: Any) -> dict[str, Any]:
    plan = manifest(image="other/iso", nodeUpgradeOption={"pauseNodes": ["node-0", "node-9"]})
    return {**plan, "metadata": metadata or plan["metadata"]}


async def test_all_reasons_are_printed_at_once(cluster: Cluster, hook: Webhook) -> None:
    await hook.node("node-0", unschedulable=True)
    await hook.node("node-1", ready="False")
    assert (await cluster.fail("create", "-f", "-", stdin=broken_plan())).splitlines() == [
        "Warning: check 'things' skipped: the cluster does not serve things.absent.example.io",
        'The UpgradePlan "demo" is invalid: ',
        f"* spec.image: {IMAGE}",
        "* spec.nodeUpgradeOption.pauseNodes[1]: Node node-9 does not exist. Correct the name, or remove it",
        "* spec: Node node-0 is cordoned. Uncordon it: kubectl uncordon node-0",
        f"* spec: {NOT_READY}",
    ]


@pytest.mark.full
async def test_each_command_prints_reasons_and_warnings(cluster: Cluster, hook: Webhook) -> None:
    await hook.node("node-0")
    generated = broken_plan(generateName="to-v1.8-")
    message = await cluster.fail("create", "-f", "-", stdin=generated)
    assert 'The UpgradePlan "to-v1.8-' in message
    assert "Node node-9 does not exist" in message
    for command in ("create --dry-run=server", "apply --dry-run=server", "apply"):
        message = await cluster.fail(*command.split(), "-f", "-", stdin=broken_plan())
        assert "Node node-9 does not exist. Correct the name, or remove it" in message
        assert "Import the ISO there" in message
        assert (await cluster.succeed("get", "up", "-o", "name")).out == ""
        accepted = await cluster.succeed(*command.split(), "-f", "-", stdin=manifest())
        assert accepted.out.startswith("upgradeplan.management.harvesterhci.io/demo created")
        assert "Warning: check 'things' skipped" in accepted.err


@pytest.mark.rule("admission: an update is checked only for added pauses and a changed toolkit image")
@pytest.mark.full
async def test_update_checks_added_names_only(cluster: Cluster, hook: Webhook) -> None:
    await hook.node("node-0")
    await cluster.succeed("apply", "-f", "-", stdin=manifest())
    pause = manifest(version="v1.8.0", nodeUpgradeOption={"pauseNodes": ["node-0", "node-9"]})
    message = await cluster.fail("apply", "-f", "-", stdin=pause)
    assert "spec.nodeUpgradeOption.pauseNodes[1]: Node node-9 does not exist" in message
    pause["spec"]["nodeUpgradeOption"]["pauseNodes"] = ["node-0"]
    await cluster.succeed("apply", "-f", "-", stdin=pause)
    await cluster.wire.delete("/api/v1/nodes/node-0")
    await cluster.succeed("annotate", "up", "demo", "a=b")
    await cluster.succeed("patch", "up", "demo", "--type=merge", "-p", '{"spec":{"nodeUpgradeOption":null}}')


@pytest.mark.rule("admission: an Upgrade of Harvester is denied while a plan runs or cleans up")
async def test_builtin_upgrade_is_denied_while_a_plan_runs(cluster: Cluster, hook: Webhook) -> None:
    (definition,) = (one for one in foreign_crds() if one["metadata"]["name"] == UPGRADES.name)
    await cluster.succeed("apply", "-f", "-", stdin=definition)
    await cluster.succeed("wait", "--for=condition=Established", f"crd/{UPGRADES.name}", "--timeout=30s")
    metadata = {"name": "hvst-upgrade", "namespace": "harvester-system"}
    upgrade = manifest(version="v1.8.0") | {"apiVersion": UPGRADES.api_version, "kind": "Upgrade", "metadata": metadata}
    await hook.plan("running", status=progressing("True"))
    message = await cluster.fail("create", "-f", "-", stdin=upgrade)
    assert 'The Upgrade "hvst-upgrade" is invalid' in message
    assert "UpgradePlan running is in progress (phase ImagePreloading). Wait until it has ended: kubectl" in message
    await hook.plan("queued", status={"queuedSince": "2026-01-01T00:00:00Z"})
    await cluster.wire.patch(f"{PLANS}/running/status", {"status": progressing("False")})
    await cluster.succeed("create", "-f", "-", stdin=upgrade)


@pytest.mark.full
async def test_longest_pause_list_reaches_the_webhook(cluster: Cluster, hook: Webhook) -> None:
    """The API server limits the cost of a matchCondition."""
    await hook.node("node-1")
    names = [f"node-{index}" for index in range(MAX_NODES)]
    plan = manifest(version="v1.8.0", nodeUpgradeOption={"pauseNodes": names[1:]})
    plan["metadata"]["annotations"] = {ANNOTATION_SKIP_WEBHOOK: "true"}
    assert (await cluster.wire.post(PLANS, plan)).status == 201
    patch = {"spec": {"nodeUpgradeOption": {"pauseNodes": names}}}
    answer = await cluster.wire.patch(f"{PLANS}/demo", patch)
    message = "Node node-0 does not exist. Correct the name, or remove it"
    assert (answer.status, answer.body["details"]["causes"][0]["message"]) == (422, message)


@pytest.mark.full
@pytest.mark.rule(
    "admission: plans in progress are deleted with consent only, and never while components or nodes change"
)
async def test_all_plans_are_deleted_except_those_in_progress(cluster: Cluster, hook: Webhook) -> None:
    await hook.plan("ended", status=progressing("False"))
    await hook.plan("new", status={})
    await hook.plan("running", status=progressing("True"))
    await hook.plan("upgrading", status=progressing("True", "NodeUpgrading"), annotations={ALLOW: "true"})
    outcome = await cluster.kubectl("delete", "up", "--all")
    assert outcome.code == 1
    assert sorted(line.split('"')[1] for line in outcome.lines) == ["ended", "new"]
    reason = "UpgradePlan running is in progress (phase ImagePreloading). To delete it, first run"
    command = f"kubectl annotate --overwrite upgradeplans.management.harvesterhci.io running {ALLOW}=true"
    assert f"{reason} {command}" in outcome.err
    assert "UpgradePlan upgrading cannot be deleted in phase NodeUpgrading" in outcome.err
    # Each plan of a collection is reviewed.
    answer = await cluster.wire.delete(PLANS)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert {"running", "upgrading"} <= {*(await cluster.wire.get(PLANS)).names}
    await cluster.succeed(*command.split()[1:])
    assert len((await cluster.succeed("delete", "up", "running")).lines) == 1


@pytest.mark.full
async def test_finalizer_of_a_deleted_plan_is_removed(cluster: Cluster, hook: Webhook) -> None:
    await hook.plan("demo", status=progressing("True"), finalizers=[FINALIZER])
    await cluster.succeed("annotate", "up", "demo", f"{ALLOW}=true")
    await cluster.succeed("delete", "up", "demo", "--wait=false")
    await cluster.succeed("patch", "up", "demo", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert (await cluster.succeed("get", "up", "-o", "name")).out == ""


@pytest.mark.rule("admission: a webhook that is down blocks neither the manager nor ended plans")
async def test_webhook_that_is_down_blocks_only_what_it_may_deny(cluster: Cluster, hook: Webhook) -> None:
    pause = '{"spec":{"nodeUpgradeOption":{"pauseNodes":["node-9"]}}}'
    await hook.plan("ended", status=progressing("False"), finalizers=[FINALIZER])
    await hook.plan("running", status=progressing("True"))
    paused = [f"node-{index}" for index in range(500)]
    await hook.plan("paused", status=progressing("True"), pause=paused)
    await hook.stop()
    patched = ["patch", "up", "running", "--type=merge", "-p", pause]
    for denied in (["create", "-f", "-"], ["delete", "up", "running"], patched):
        message = await cluster.fail(*denied, stdin=manifest())
        assert 'failed calling webhook "upgradeplans.management.harvesterhci.io"' in message
    await cluster.succeed("patch", "up", "ended", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await cluster.succeed("patch", "up", "running", "--type=merge", "-p", pause.replace('"node-9"', ""))
    fewer = json.dumps({"spec": {"nodeUpgradeOption": {"pauseNodes": paused[1:]}}})
    await cluster.succeed("patch", "up", "paused", "--type=merge", "-p", fewer)
    await cluster.succeed("delete", "up", "ended")
    skipped = manifest("skipped")
    skipped["metadata"]["annotations"] = {"management.harvesterhci.io/skip-webhook": "true"}
    await cluster.succeed("create", "-f", "-", stdin=skipped)


@pytest.mark.full
async def test_running_review_is_answered_when_the_webhook_stops(cluster: Cluster, hook: Webhook) -> None:
    await hook.node("node-0")
    hook.reader.released.clear()
    hook.reader.waiting.clear()
    async with asyncio.TaskGroup() as group:
        creation = group.create_task(cluster.kubectl("create", "-f", "-", stdin=manifest()))
        await hook.reader.waiting.wait()
        stopping = group.create_task(hook.stop())
        await cluster.wire.get(PLANS)
        hook.reader.released.set()
        await stopping
    assert creation.result().code == 0, creation.result().err


@pytest.mark.rule("admission: no request fails while the certificate is renewed")
@pytest.mark.full
async def test_no_request_fails_while_the_certificate_is_renewed(cluster: Cluster) -> None:
    async with webhook(cluster, age=RENEWAL) as hook:
        renewal = asyncio.create_task(hook.rotation.rotate())
        statuses: list[int] = []
        while len(statuses) < 100 or not renewal.done():
            statuses.append((await cluster.wire.post(PLANS, manifest(), dryRun="All")).status)
        await renewal
        statuses += [(await cluster.wire.post(PLANS, manifest(), dryRun="All")).status for _ in range(10)]
        assert set(statuses) == {422}
        bundle = (await cluster.wire.get(f"{CONFIGURATIONS}/{CONFIGURATION}")).body["webhooks"][0]["clientConfig"]
        assert base64.b64decode(bundle["caBundle"]).count(b"BEGIN CERTIFICATE") == 2


@pytest.mark.full
async def test_applied_manifest_keeps_the_ca_bundle(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "webhook.yaml"
    _, configuration = yaml.safe_load_all(MANIFEST.read_text())
    file.write_text(yaml.safe_dump(configuration))
    await cluster.succeed("apply", "-f", str(file))
    path = f"{CONFIGURATIONS}/{CONFIGURATION}"
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "AAAA"}]
    assert (await cluster.wire.patch(path, patch, kind="json")).status == 200
    configuration["webhooks"][0]["timeoutSeconds"] = 9
    file.write_text(yaml.safe_dump(configuration))
    await cluster.succeed("apply", "-f", str(file))
    (found,) = (await cluster.wire.get(path)).body["webhooks"]
    assert (found["timeoutSeconds"], found["clientConfig"]["caBundle"]) == (9, "AAAA")
    await cluster.succeed("delete", "-f", str(file))
