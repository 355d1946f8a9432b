"""kubectl patch, label, annotate, edit and cordon."""

from __future__ import annotations

import pytest

from tests.support.cluster.kubectl import Cluster
from upgrade_manager.api.display import UNSEEN_STATUS

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


NAME = "upgradeplan.management.harvesterhci.io/demo"


@pytest.mark.parametrize(
    ("kind", "patch", "done", "force"),
    [
        ("merge", '{"spec":{"force":true}}', "patched", {"force": True}),
        ("json", '[{"op":"add","path":"/spec/force","value":true}]', "patched", {"force": True}),
        ("merge", '{"spec":{"version":"v1.8.0"}}', "patched (no change)", {}),
    ],
)
async def test_patch_changes_one_field(
    cluster: Cluster, kind: str, patch: str, done: str, force: dict[str, bool]
) -> None:
    # The first write of a plan stores the status that the schema sets by default.
    await cluster.plan(status={})
    outcome = await cluster.succeed("patch", "up", "demo", f"--type={kind}", "-p", patch)
    assert outcome.out == f"{NAME} {done}\n"
    spec = await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec}")
    assert spec.json == {"version": "v1.8.0"} | force


@pytest.mark.rule("api: pauseNodes may change while the plan runs")
async def test_pause_list_can_change_while_a_plan_runs(cluster: Cluster) -> None:
    await cluster.plan(version="v1.8.0", nodeUpgradeOption={"pauseNodes": ["node-0", "node-1"]})
    patch = '[{"op":"remove","path":"/spec/nodeUpgradeOption/pauseNodes/0"}]'
    await cluster.succeed("patch", "up", "demo", "--type=json", "-p", patch)
    left = await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec.nodeUpgradeOption.pauseNodes}")
    assert left.json == ["node-1"]


@pytest.mark.rule("api: status is a subresource")
async def test_status_is_patched_at_its_subresource(cluster: Cluster) -> None:
    await cluster.plan()
    patch = '{"status":{"currentPhase":"Initializing"},"spec":{"force":true}}'
    await cluster.succeed("patch", "up", "demo", "--subresource=status", "--type=merge", "-p", patch)
    stored = (await cluster.succeed("get", "up", "demo", "-o", "json")).json
    assert stored["status"] == {**UNSEEN_STATUS, "currentPhase": "Initializing"}
    assert stored["spec"] == {"version": "v1.8.0"}
    assert stored["metadata"]["generation"] == 1


async def test_annotations_and_labels_are_set_and_removed(cluster: Cluster) -> None:
    await cluster.plan()
    key = "management.harvesterhci.io/allow-deletion"

    async def metadata() -> dict[str, dict[str, str]]:
        found = (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.metadata}")).json
        return {field: found[field] for field in ("annotations", "labels") if field in found}

    assert (await cluster.succeed("annotate", "up", "demo", f"{key}=true")).out == f"{NAME} annotated\n"
    assert (await cluster.succeed("label", "up", "demo", "team=blue")).out == f"{NAME} labeled\n"
    assert await metadata() == {"annotations": {key: "true"}, "labels": {"team": "blue"}}
    message = await cluster.fail("label", "up", "demo", "team=red")
    assert "already has a value (blue), and --overwrite is false" in message
    await cluster.succeed("label", "up", "demo", "team=red", "--overwrite")
    await cluster.succeed("annotate", "up", "demo", f"{key}-")
    assert (await cluster.succeed("label", "up", "demo", "team-")).out == f"{NAME} unlabeled\n"
    assert await metadata() == {}


@pytest.mark.rule("api: CEL rules of the schema enforce this without a webhook")
async def test_edit_changes_a_plan(cluster: Cluster) -> None:
    await cluster.plan(version="v1.8.0", force=True)
    message = await cluster.fail("edit", "up", "demo", EDITOR="sed -i 's/version: v1.8.0/version: v1.9.0/'")
    assert 'upgradeplans.management.harvesterhci.io "demo" is invalid' in message
    outcome = await cluster.succeed("edit", "up", "demo", EDITOR="true")
    assert outcome.err + outcome.out == "Edit cancelled, no changes made.\n"
    outcome = await cluster.succeed("edit", "up", "demo", EDITOR="sed -i 's/force: true/force: false/'")
    assert outcome.out == f"{NAME} edited\n"
    assert (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec.force}")).out == "false"


async def test_node_is_cordoned_and_uncordoned(cluster: Cluster) -> None:
    await cluster.wire.post("/api/v1/nodes", {"metadata": {"name": "node-0"}, "status": {"conditions": []}})
    assert (await cluster.succeed("cordon", "node-0")).out == "node/node-0 cordoned\n"
    assert (await cluster.succeed("get", "nodes", "--no-headers")).rows[0][1] == "Unknown,SchedulingDisabled"
    assert (await cluster.succeed("uncordon", "node-0")).out == "node/node-0 uncordoned\n"
