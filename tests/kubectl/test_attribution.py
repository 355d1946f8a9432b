"""Who created a plan and who changed it last, as kubectl's users see it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.cluster.kubectl import PLANS, Cluster, manifest
from tests.support.managers.manager_policies import unbind
from tests.support.programs.polling import eventually
from tests.support.server.accounts import grant
from tests.support.webhook import admission_policies
from tests.support.webhook.kubectl_webhook import Webhook, webhook
from upgrade_manager.api.attribution import NOT_RECORDED, last_changed_by
from upgrade_manager.api.keys import ANNOTATION_CREATED_BY, ANNOTATION_LAST_CHANGED_BY, FINALIZER, GROUP
from upgrade_manager.api.spec import MAX_NODES, UpgradePlanSpec

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]

MANAGER = "system:serviceaccount:harvester-system:harvester-upgrade-manager"
#: Of the same rights.
USERS = ("bob", "alice of accounting", "system:serviceaccount:flux-system:kustomize-controller", MANAGER)
#: Until policies that are not bound any more are not enforced.
SECONDS = 60.0
EVERYTHING = {"apiGroups": [GROUP], "resources": ["upgradeplans"], "verbs": ["*"]}


@pytest.fixture
async def hook(cluster: Cluster) -> AsyncIterator[Webhook]:
    for number, user in enumerate(USERS):
        await grant(cluster.wire, user, EVERYTHING, name=f"user-{number}")
    async with webhook(cluster) as running:
        await running.node("node-1")
        await running.node("node-2")
        yield running


async def annotations_of(cluster: Cluster, name: str = "demo") -> dict[str, str]:
    return dict((await cluster.wire.get(f"{PLANS}/{name}")).body["metadata"].get("annotations") or {})


async def changed_by(cluster: Cluster, name: str = "demo") -> str:
    found = (await cluster.wire.get(f"{PLANS}/{name}")).body
    return last_changed_by(UpgradePlanSpec.read(found["spec"]), found["metadata"].get("annotations") or {})


def pausing(*nodes: str) -> list[str]:
    patch = {"spec": {"nodeUpgradeOption": {"pauseNodes": [*nodes]}}}
    return ["patch", "up", "demo", "--type=merge", "-p", json.dumps(patch)]


@pytest.mark.rule("admission: a plan records its creator, and the user who last changed what steers it")
@pytest.mark.parametrize("user", USERS[:3])
@pytest.mark.usefixtures("hook")
async def test_users_are_recorded(cluster: Cluster, user: str) -> None:
    await cluster.succeed(f"--as={user}", "create", "-f", "-", stdin=manifest())
    assert (await annotations_of(cluster))[ANNOTATION_CREATED_BY] == await changed_by(cluster) == user
    await cluster.succeed("--as=bob", *pausing("node-1"))
    assert (await annotations_of(cluster))[ANNOTATION_CREATED_BY] == user
    assert await changed_by(cluster) == "bob"
    for change in (
        ["annotate", "up", "demo", "management.harvesterhci.io/allow-deletion=true"],
        ["patch", "up", "demo", "--type=merge", "-p", '{"spec":{"force":true}}'],
        pausing(),
    ):
        await cluster.succeed("--as=bob", "annotate", "--overwrite", "up", "demo", f"{ANNOTATION_LAST_CHANGED_BY}=x y")
        await cluster.succeed(f"--as={user}", *change)
        assert await changed_by(cluster) == user
    await cluster.succeed("--as=bob", "annotate", "up", "demo", "a=b")
    assert await changed_by(cluster) == user


@pytest.mark.full
@pytest.mark.usefixtures("hook")
async def test_apply_replace_and_dry_run_are_recorded(cluster: Cluster) -> None:
    await cluster.succeed("--as=bob", "apply", "-f", "-", stdin=manifest())
    paused = manifest(version="v1.8.0", nodeUpgradeOption={"pauseNodes": ["node-1"]})
    dry_run = ("apply", "--dry-run=server", "-o", "json", "-f", "-")
    shown = await cluster.succeed("--as=alice of accounting", *dry_run, stdin=paused)
    assert shown.json["metadata"]["annotations"][ANNOTATION_LAST_CHANGED_BY].startswith("alice of accounting ")
    assert await changed_by(cluster) == "bob"
    # Without annotations: the creator is lost, and no other one is recorded.
    paused["metadata"]["resourceVersion"] = (await cluster.wire.get(f"{PLANS}/demo")).version
    await cluster.succeed("--as=alice of accounting", "replace", "-f", "-", stdin=paused)
    assert await changed_by(cluster) == "alice of accounting"
    assert ANNOTATION_CREATED_BY not in await annotations_of(cluster)


@pytest.mark.full
@pytest.mark.usefixtures("hook")
async def test_exported_plan_gets_a_new_creator_and_the_manager_none(cluster: Cluster) -> None:
    await cluster.succeed("create", "-f", "-", stdin=manifest())
    before = await annotations_of(cluster)
    exported = (await cluster.wire.get(f"{PLANS}/demo")).body
    copy = {key: exported[key] for key in ("apiVersion", "kind", "spec")}
    copy["metadata"] = {"generateName": "copy-", "annotations": before}
    created = await cluster.succeed("--as=bob", "create", "-o", "json", "-f", "-", stdin=copy)
    assert created.json["metadata"]["annotations"][ANNOTATION_CREATED_BY] == "bob"
    await unbind(cluster.wire)

    async def is_paused() -> bool:
        paused = await cluster.kubectl(f"--as={MANAGER}", *pausing("node-1"))
        assert paused.code == 0 or "ValidatingAdmissionPolicy" in paused.err, paused.err
        return paused.code == 0

    await eventually(is_paused, seconds=SECONDS)
    assert await annotations_of(cluster) == before
    assert await changed_by(cluster) == NOT_RECORDED
    # Nor is the manager reviewed: the name is not a node.
    await cluster.succeed(f"--as={MANAGER}", *pausing("node-9"))


@pytest.mark.rule("admission: a webhook that is down leaves the user unrecorded, and blocks no change")
async def test_change_past_the_webhook_is_not_recorded(cluster: Cluster, hook: Webhook) -> None:
    await cluster.succeed("--as=bob", "create", "-f", "-", stdin=manifest())
    await cluster.succeed("--as=bob", *pausing("node-1", "node-2"))
    await hook.stop()
    await cluster.succeed("--as=alice of accounting", *pausing("node-1"))
    assert await changed_by(cluster) == NOT_RECORDED
    assert (await annotations_of(cluster))[ANNOTATION_CREATED_BY] == "bob"
    finalizer = {"metadata": {"finalizers": [FINALIZER]}}
    assert (await cluster.wire.patch(f"{PLANS}/demo", finalizer)).status == 200


@pytest.mark.full
async def test_largest_pause_list_is_recorded(cluster: Cluster, hook: Webhook) -> None:
    """The API server limits the cost of a condition."""
    names = [f"node-{index}" for index in range(MAX_NODES)]
    await hook.plan("demo", status={}, pause=names[1:])
    patch: dict[str, Any] = {"spec": {"nodeUpgradeOption": {"pauseNodes": names[2:]}}}
    answer = await cluster.wire.patch(f"{PLANS}/demo", patch | {"metadata": {"annotations": {"a": "b" * 200_000}}})
    assert answer.status == 200, answer.body["message"][:500]
    assert (await changed_by(cluster)) in {"admin", "system:admin"}


@pytest.mark.full
@pytest.mark.assets
@pytest.mark.rule("security: no user is recorded under another name")
async def test_policy_admits_what_the_webhook_records(cluster: Cluster) -> None:
    async with admission_policies.installed(cluster), webhook(cluster) as hook:
        await hook.node("node-1")
        forged = manifest()
        forged["metadata"]["annotations"] = {ANNOTATION_CREATED_BY: "admin", ANNOTATION_LAST_CHANGED_BY: "admin 0"}
        await cluster.succeed("--as=editor", "create", "-f", "-", stdin=forged)
        assert (await annotations_of(cluster))[ANNOTATION_CREATED_BY] == await changed_by(cluster) == "editor"
        await cluster.succeed("--as=operator", *pausing("node-1"))
        assert await changed_by(cluster) == "operator"
        await hook.stop()
        await cluster.succeed("--as=operator", *pausing())
        assert await changed_by(cluster) == NOT_RECORDED
        renamed = f"{ANNOTATION_LAST_CHANGED_BY}=editor {'0' * 64}"
        message = await cluster.fail("--as=operator", "annotate", "--overwrite", "up", "demo", renamed)
        assert "last-changed-by is set from the user who changes the plan" in message
