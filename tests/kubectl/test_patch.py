"""kubectl patch, label, annotate, edit and cordon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param("merge", '{"spec":{"force":true}}', id="merge"),
        pytest.param("json", '[{"op":"add","path":"/spec/force","value":true}]', id="json"),
    ],
)
async def test_patch_changes_one_field(cluster: Cluster, kind: str, patch: str) -> None:
    await cluster.plan()
    outcome = await cluster.succeed("patch", "up", "demo", f"--type={kind}", "-p", patch)
    assert outcome.out == "upgradeplan.management.harvesterhci.io/demo patched\n"
    spec = await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec}")
    assert spec.json == {"version": "v1.8.0", "force": True}


async def test_no_op_patch_is_reported(cluster: Cluster) -> None:
    await cluster.plan()
    outcome = await cluster.succeed("patch", "up", "demo", "--type=merge", "-p", '{"spec":{"version":"v1.8.0"}}')
    assert outcome.out == "upgradeplan.management.harvesterhci.io/demo patched (no change)\n"


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
    assert stored["status"] == {"currentPhase": "Initializing"}
    assert stored["spec"] == {"version": "v1.8.0"}
    assert stored["metadata"]["generation"] == 1


async def test_annotations_and_labels_are_set_and_removed(cluster: Cluster) -> None:
    await cluster.plan()
    key = "management.harvesterhci.io/allow-deletion"
    annotated = await cluster.succeed("annotate", "up", "demo", f"{key}=true")
    assert annotated.out == "upgradeplan.management.harvesterhci.io/demo annotated\n"
    labelled = await cluster.succeed("label", "up", "demo", "team=blue")
    assert labelled.out == "upgradeplan.management.harvesterhci.io/demo labeled\n"
    metadata = (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.metadata}")).json
    assert metadata["annotations"] == {key: "true"}
    assert metadata["labels"] == {"team": "blue"}
    await cluster.succeed("annotate", "up", "demo", f"{key}-")
    unlabelled = await cluster.succeed("label", "up", "demo", "team-")
    assert unlabelled.out == "upgradeplan.management.harvesterhci.io/demo unlabeled\n"
    metadata = (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.metadata}")).json
    assert not metadata.keys() & {"annotations", "labels"}


async def test_label_is_overwritten_only_with_the_flag(cluster: Cluster) -> None:
    await cluster.plan()
    await cluster.succeed("label", "up", "demo", "team=blue")
    message = await cluster.fail("label", "up", "demo", "team=red")
    assert "already has a value (blue), and --overwrite is false" in message
    await cluster.succeed("label", "up", "demo", "team=red", "--overwrite")


async def test_edit_changes_a_plan(cluster: Cluster) -> None:
    await cluster.plan(version="v1.8.0", force=True)
    editor = "sed -i 's/force: true/force: false/'"
    outcome = await cluster.succeed("edit", "up", "demo", EDITOR=editor)
    assert outcome.out == "upgradeplan.management.harvesterhci.io/demo edited\n"
    assert (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec.force}")).out == "false"


async def test_edit_without_changes_is_cancelled(cluster: Cluster) -> None:
    await cluster.plan()
    outcome = await cluster.succeed("edit", "up", "demo", EDITOR="true")
    assert outcome.err + outcome.out == "Edit cancelled, no changes made.\n"


@pytest.mark.rule("api: CEL rules of the schema enforce this without a webhook")
async def test_edit_that_violates_a_rule_is_refused(cluster: Cluster) -> None:
    await cluster.plan()
    message = await cluster.fail("edit", "up", "demo", EDITOR="sed -i 's/version: v1.8.0/version: v1.9.0/'")
    assert 'upgradeplans.management.harvesterhci.io "demo" is invalid' in message


async def test_node_is_cordoned_and_uncordoned(cluster: Cluster) -> None:
    await cluster.wire.post("/api/v1/nodes", {"metadata": {"name": "node-0"}, "status": {"conditions": []}})
    assert (await cluster.succeed("cordon", "node-0")).out == "node/node-0 cordoned\n"
    assert (await cluster.succeed("get", "nodes", "--no-headers")).rows[0][1] == "Unknown,SchedulingDisabled"
    assert (await cluster.succeed("uncordon", "node-0")).out == "node/node-0 uncordoned\n"
