"""The phase as a whole: Rancher, Secrets, Machines, Jobs and Nodes are played by hand, one move at a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.harvester import RELEASE
from upgrade_manager.api.keys import MANAGED_LABEL, JobType
from upgrade_manager.api.nodestates import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, Transient
from upgrade_manager.kube.kinds import (
    ADDONS,
    CONFIG_MAPS,
    JOBS,
    LONGHORN_SETTINGS,
    MACHINES,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    UPGRADE_PLANS,
)
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.pipeline.errors import BadCluster, ForeignObject, MissingObject
from upgrade_manager.pipeline.nodeupgrade import NodeUpgrade
from upgrade_manager.pipeline.phase import Completed, Failed, Waiting
from upgrade_manager.pipeline.scope import Scope
from upgrade_manager.resources.jobs import JobSettings, node_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from tests.support.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.phase import Outcome

PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
ASK_PRE, ASK_POST = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
PENDING = "management.harvesterhci.io/pendingOSImage"
QUESTION = json.dumps({"preDrainHooks": [{"annotation": PRE}], "postDrainHooks": [{"annotation": POST}]})
PLACE = "harvester-system"
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


class Stage:
    """A cluster of some nodes in the middle of the phase; every step is a reconcile by a new process."""

    def __init__(self, cluster: Harvester) -> None:
        self.cluster = cluster
        self.phase = NodeUpgrade()

    async def set_up(self, *nodes: str) -> None:
        await self.cluster.nodes(*nodes)
        for node in nodes:
            await self.machine(node)
        place = {"namespace": "fleet-local", "name": "local"}
        spec = {"kubernetesVersion": "v1.32.4+rke2r1", "rkeConfig": {"provisionGeneration": 4}}
        await self.cluster.put(PROVISIONING_CLUSTERS, {"metadata": place, "spec": spec})
        await self.cluster.plan(status={"releaseMetadata": RELEASE, "currentPhase": "ClusterUpgraded"})

    async def machine(self, node: str) -> None:
        place = {"namespace": "fleet-local", "name": f"m-{node}"}
        status = {"nodeRef": {"kind": "Node", "apiVersion": "v1", "name": node}}
        spec = {"clusterName": "local", "bootstrap": {}, "infrastructureRef": {"name": "x", "kind": "x"}}
        await self.cluster.put(MACHINES, {"metadata": place, "spec": spec}, status=status)
        metadata = {
            "name": f"s-{node}",
            "namespace": "fleet-local",
            "labels": {"rke.cattle.io/machine-name": f"m-{node}"},
        }
        await self.cluster.put(SECRETS, {"metadata": metadata, "type": "rke.cattle.io/machine-plan", "data": {}})

    async def scope(self) -> Scope:
        return self.cluster.scope(await self.cluster.client.get(UPGRADE_PLANS, "up"))

    async def enter(self) -> None:
        scope = await self.scope()
        assert await self.phase.enter(scope) is None
        scope.draft.record("NodeUpgrading")
        await scope.persist()

    async def run(self, *, record: bool = True) -> Outcome:
        scope = await self.scope()
        outcome = await self.phase.run(scope)
        if record:
            await scope.persist()
        return outcome

    async def rancher(self, node: str, **annotations: str | None) -> None:
        named = {ASK_PRE if key == "pre" else ASK_POST: value for key, value in annotations.items()}
        patch = MergePatch({"metadata": {"annotations": named}})
        await self.cluster.client.patch(SECRETS, f"s-{node}", patch, namespace="fleet-local")

    async def answers(self, node: str) -> dict[str, str]:
        found = objects.annotations_of(await self.cluster.find(SECRETS, f"s-{node}", "fleet-local"))
        return {key: value for key, value in found.items() if key in {PRE, POST}}

    async def finish(self, node: str, step: str, status: dict[str, Any]) -> None:
        await self.cluster.finish(JOBS, f"up-node-upgrade-{step}-{node}", "harvester-system", status)

    async def reboot(self, node: str) -> None:
        status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"osImage": RELEASE["os"]}}
        await self.cluster.finish(NODES, node, "", status)

    def warned(self) -> list[tuple[str, str]]:
        """Reasons of the Warning events, and the names that make each of them the only one."""
        said = zip(self.cluster.heard.said, self.cluster.heard.names, strict=True)
        return [(reason, name) for (reason, _), name in said if reason != "PhaseTransition"]

    async def states(self) -> dict[str, str]:
        plan = await self.cluster.client.get(UPGRADE_PLANS, "up")
        return {node: entry["state"] for node, entry in plan["status"]["nodeUpgradeStatuses"].items()}

    async def of_others(self) -> list[Object]:
        """Everything of somebody else's that the phase changes for its time."""
        kinds = (LONGHORN_SETTINGS, ADDONS, PROVISIONING_CLUSTERS)
        return [item for kind in kinds for item in (await self.cluster.client.list(kind)).items]

    async def generation(self) -> int:
        found = await self.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
        return int(found["spec"]["rkeConfig"]["provisionGeneration"])


@pytest.fixture
async def stage(cluster: Harvester) -> Stage:
    return Stage(cluster)


@pytest.mark.parametrize("record", [True, False], ids=["recorded", "killed before every record but the last"])
async def test_a_node_is_taken_through_both_hooks_and_its_reboot(stage: Stage, record: bool) -> None:  # noqa: FBT001  # a table
    await stage.set_up("n1", "n2")
    await stage.enter()
    for node in ("n1", "n2"):
        await stage.run(record=record)
        assert await stage.generation() == 5
        await stage.rancher(node, pre=QUESTION)
        await stage.run(record=record)
        assert await stage.answers(node) == {}
        await stage.finish(node, "pre-drain", COMPLETE)
        await stage.run(record=record)
        assert await stage.answers(node) == {PRE: QUESTION}
        await stage.rancher(node, post=QUESTION)
        await stage.run(record=record)
        await stage.finish(node, "post-drain", COMPLETE)
        await stage.run()
        assert (await stage.states())[node] == "WaitingReboot"
        assert objects.annotations_of(await stage.cluster.find(NODES, node))[PENDING] == RELEASE["os"]
        assert await stage.answers(node) == {PRE: QUESTION}
        await stage.reboot(node)
        outcome = await stage.run()
        assert await stage.answers(node) == {PRE: QUESTION, POST: QUESTION}
        assert PENDING not in objects.annotations_of(await stage.cluster.find(NODES, node))
        assert isinstance(outcome, Waiting)
        await stage.rancher(node, pre=None, post=None)
    assert await stage.run() == Completed()
    assert await stage.states() == {"n1": "PostDrained", "n2": "PostDrained"}
    assert await stage.generation() == 5
    assert len(await stage.cluster.names(JOBS)) == 4


@pytest.mark.parametrize(
    "state", ["ImagePreloaded", "UpgradePaused", "PreDraining", "PreDrained", "PostDraining", "WaitingReboot"]
)
async def test_the_phase_does_not_end_before_every_node_is_done(stage: Stage, state: str) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    scope = await stage.scope()
    scope.draft.move_node("n1", NodeState.POST_DRAINED)
    scope.draft.move_node("n2", NodeState(state))
    await scope.persist()
    outcome = await stage.run()
    assert isinstance(outcome, Waiting)
    assert outcome.message.endswith("(1 of 2 nodes done)")
    scope = await stage.scope()
    scope.draft.move_node("n2", NodeState.POST_DRAINED)
    await scope.persist()
    assert await stage.run() == Completed()


async def test_the_phase_does_not_end_before_rancher_has_cleared_its_question(stage: Stage) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    scope = await stage.scope()
    for node in ("n1", "n2"):
        scope.draft.move_node(node, NodeState.POST_DRAINED)
    await scope.persist()
    await stage.rancher("n1", post=QUESTION)
    question = "node n1: Secret fleet-local/s-n1 with rke.cattle.io/post-drain"
    waits = (
        f"waiting for {question}, answered: Rancher to remove it when it has uncordoned the node (2 of 2 nodes done)"
    )
    for _ in range(2):
        assert await stage.run() == Waiting(message=waits)
        assert await stage.answers("n1") == {POST: QUESTION}
    await stage.rancher("n1", post=None)
    assert await stage.run() == Completed()


async def test_a_question_that_holds_up_the_end_is_told_with_its_node_its_state_and_who_has_to_act(
    stage: Stage,
) -> None:
    nodes = ("n1", "n2", "n3", "n4", "n5")
    await stage.set_up(*nodes)
    await stage.enter()
    await stage.run()
    scope = await stage.scope()
    for node in nodes:
        scope.draft.move_node(node, NodeState.POST_DRAINED)
        await stage.rancher(node, post="{}" if node == "n2" else QUESTION)
    await scope.persist()
    await stage.cluster.client.delete(NODES, "n3")
    outcome = await stage.run()
    assert isinstance(outcome, Waiting)
    first, second, third, rest = outcome.message.removeprefix("waiting for ").split("; ")
    assert first.startswith("node n1: Secret fleet-local/s-n1 with rke.cattle.io/post-drain, answered: Rancher to")
    assert second.startswith(
        f"node n2: Secret fleet-local/s-n2 with rke.cattle.io/post-drain that does not ask for {POST}"
    )
    assert "node n3: Secret fleet-local/s-n3" in third
    assert "the node is gone" in third
    assert rest == "2 more (4 of 4 nodes done)"
    await stage.rancher("n2", post=None)
    assert [(await stage.answers(node)).get(POST) for node in nodes] == [QUESTION, None, None, QUESTION, QUESTION]


class TestEnter:
    async def test_every_managed_node_begins_as_preloaded_and_none_goes_back(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        scope = await stage.scope()
        scope.draft.move_node("n1", NodeState.PRE_DRAINED)
        await scope.persist()
        await stage.cluster.nodes("unmanaged", **{MANAGED_LABEL: "false"})
        await stage.enter()
        assert await stage.states() == {"n1": "PreDrained", "n2": "ImagePreloaded"}

    async def test_nothing_is_changed_before_the_old_values_are_on_record(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        name = {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"}
        await stage.cluster.put(LONGHORN_SETTINGS, {"metadata": name, "value": "600"})
        spec = {"enabled": True, "repo": "r", "chart": "c", "version": "1", "valuesContent": ""}
        await stage.cluster.put(ADDONS, {"metadata": {"name": "descheduler", "namespace": "kube-system"}, "spec": spec})
        before = await stage.of_others()
        scope = await stage.scope()
        # Somebody has written to the plan meanwhile, so that the notes are refused.
        touched = MergePatch({"metadata": {"labels": {"touched": "yes"}}})
        await stage.cluster.client.patch(UPGRADE_PLANS, "up", touched)
        with pytest.raises(Conflict):
            await stage.phase.enter(scope)
        assert await stage.of_others() == before

    async def test_the_old_value_is_noted_before_it_is_changed_and_never_again(self, stage: Stage) -> None:
        await stage.set_up("n1")
        name = {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"}
        await stage.cluster.put(LONGHORN_SETTINGS, {"metadata": name, "value": "600"})
        for _ in range(3):
            await NodeUpgrade().enter(await stage.scope())
        notes = objects.annotations_of(await stage.cluster.client.get(UPGRADE_PLANS, "up"))
        assert notes["management.harvesterhci.io/replica-replenishment-wait-interval"] == "600"
        setting = await stage.cluster.find(LONGHORN_SETTINGS, "replica-replenishment-wait-interval", "longhorn-system")
        assert setting["value"] == "1800"

    async def test_without_ranchers_cluster_it_does_not_begin(self, stage: Stage) -> None:
        await stage.cluster.nodes("n1", "n2")
        await stage.cluster.plan(status={"releaseMetadata": RELEASE})
        with pytest.raises(MissingObject):
            await NodeUpgrade().enter(await stage.scope())


async def test_an_answer_changes_our_annotation_and_nothing_else_of_the_secret(stage: Stage) -> None:
    await stage.set_up("n1", "n2")
    data = MergePatch({"data": {"plan": "e30=", "appliedPlan": "e30="}, "metadata": {"annotations": {"other": "x"}}})
    await stage.cluster.client.patch(SECRETS, "s-n1", data, namespace="fleet-local")
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=QUESTION)
    await stage.run()
    await stage.finish("n1", "pre-drain", COMPLETE)
    before = await stage.cluster.find(SECRETS, "s-n1", "fleet-local")
    await stage.run()
    after = await stage.cluster.find(SECRETS, "s-n1", "fleet-local")
    assert objects.annotations_of(after).pop(PRE) == QUESTION
    for secret in (before, after):
        objects.metadata(secret).pop("resourceVersion")
        objects.metadata(secret).pop("managedFields", None)
    assert after == before


async def test_the_generation_is_on_record_before_a_hook_is_answered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: Scope) -> bool:
        raise Conflict("somebody else was faster")

    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.rancher("n1", pre=QUESTION)
    with monkeypatch.context() as refusing:
        refusing.setattr(Scope, "persist", refuse)
        for _ in range(2):
            with pytest.raises(Conflict):
                await stage.run()
    assert await stage.generation() == 5
    assert await stage.cluster.names(JOBS) == []
    await stage.run()
    plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
    assert objects.status(plan)["provisionGeneration"] == await stage.generation() == 5
    assert await stage.cluster.names(JOBS) == ["up-node-upgrade-pre-drain-n1"]


class TestOddities:
    @pytest.mark.parametrize(
        ("namespace", "type_"),
        [
            pytest.param("fleet-local", "Opaque", id="of another type"),
            pytest.param("harvester-system", "rke.cattle.io/machine-plan", id="elsewhere"),
        ],
    )
    async def test_a_secret_is_no_question(self, stage: Stage, namespace: str, type_: str) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        labels = {"rke.cattle.io/machine-name": "m-n1"}
        annotations = {ASK_PRE: QUESTION, ASK_POST: QUESTION}
        metadata = {"name": "stray", "namespace": namespace, "labels": labels, "annotations": annotations}
        await stage.cluster.put(SECRETS, {"metadata": metadata, "type": type_, "data": {}})
        await stage.run()
        assert await stage.cluster.names(JOBS) == []
        scope = await stage.scope()
        for node in ("n1", "n2"):
            scope.draft.move_node(node, NodeState.POST_DRAINED)
        await scope.persist()
        assert await stage.run() == Completed()

    async def test_an_earlier_upgrades_answers_are_removed_before_rancher_is_asked(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        left = MergePatch({"metadata": {"annotations": {PRE: QUESTION, POST: QUESTION, "other": "x"}}})
        await stage.cluster.client.patch(SECRETS, "s-n1", left, namespace="fleet-local")
        await stage.enter()
        await stage.run()
        secret = await stage.cluster.find(SECRETS, "s-n1", "fleet-local")
        assert objects.annotations_of(secret) == {"other": "x"}

    async def test_answers_of_this_upgrade_are_not_removed_after_a_crash(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        await stage.run()
        await stage.rancher("n1", pre=QUESTION)
        await stage.run(record=False)
        await stage.finish("n1", "pre-drain", COMPLETE)
        await stage.run(record=False)
        await stage.run(record=False)
        assert await stage.answers("n1") == {PRE: QUESTION}

    async def test_a_question_of_the_built_in_flow_is_not_ours_to_answer(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        await stage.rancher("n1", pre=json.dumps({"preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}]}))
        await stage.run()
        assert await stage.cluster.names(JOBS) == []

    async def test_a_node_that_leaves_does_not_hold_the_others_up(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        await stage.run()
        scope = await stage.scope()
        scope.draft.move_node("n1", NodeState.POST_DRAINED)
        await scope.persist()
        await stage.cluster.client.delete(NODES, "n2")
        assert await stage.run() == Completed()

    async def test_a_node_that_joins_is_answered_when_rancher_asks(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        await stage.run()
        await stage.cluster.nodes("n3")
        await stage.machine("n3")
        await stage.run()
        assert "n3" not in await stage.states()
        await stage.rancher("n3", pre=QUESTION)
        await stage.run()
        assert (await stage.states())["n3"] == "PreDraining"

    async def test_a_secret_whose_machine_is_gone_does_not_hold_the_end_up(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        await stage.run()
        await stage.rancher("n2", post=QUESTION)
        await stage.cluster.client.delete(MACHINES, "m-n2", namespace="fleet-local")
        scope = await stage.scope()
        for node in ("n1", "n2"):
            scope.draft.move_node(node, NodeState.POST_DRAINED)
        await scope.persist()
        assert await stage.run() == Completed()

    async def test_a_cluster_whose_nodes_lost_their_label_is_not_done(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        await stage.run()
        patch = MergePatch({"metadata": {"labels": {"harvesterhci.io/managed": None}}})
        for node in ("n1", "n2"):
            await stage.cluster.client.patch(NODES, node, patch)
        with pytest.raises(BadCluster, match="no Node carries"):
            await stage.run()

    async def test_a_namesakes_job_is_not_taken_for_ours(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        settings = JobSettings(image=ToolkitImage(repository="r", tag="t"), service_account="a")
        old = node_job(Owner(name="up", uid="old"), settings, node="n1", job_type=JobType.PRE_DRAIN)
        await stage.cluster.put(JOBS, old, status=COMPLETE)
        await stage.run()
        await stage.rancher("n1", pre=QUESTION)
        with pytest.raises(ForeignObject):
            await stage.run()
        assert await stage.answers("n1") == {}


class TestSingleNode:
    @pytest.mark.parametrize("record", [True, False], ids=["recorded", "killed before every record but the last"])
    async def test_one_job_does_all_of_it(self, stage: Stage, record: bool) -> None:  # noqa: FBT001  # a table
        await stage.set_up("n1")
        await stage.enter()
        await stage.run(record=record)
        assert await stage.cluster.names(JOBS) == ["up-node-upgrade-single-node-upgrade-n1"]
        await stage.finish("n1", "single-node-upgrade", COMPLETE)
        outcome = await stage.run()
        assert outcome == Waiting(
            message=f'waiting for node n1 to come back with "{RELEASE["os"]}" (0 of 1 nodes done)'
        )
        assert await stage.states() == {"n1": "WaitingReboot"}
        assert objects.annotations_of(await stage.cluster.find(NODES, "n1"))[PENDING] == RELEASE["os"]
        await stage.reboot("n1")
        assert await stage.run() == Completed()
        assert await stage.states() == {"n1": "SingleNodeUpgraded"}
        assert PENDING not in objects.annotations_of(await stage.cluster.find(NODES, "n1"))
        assert len(await stage.cluster.names(JOBS)) == 1

    async def test_rancher_is_not_asked_and_nothing_of_it_is_noted(self, stage: Stage) -> None:
        await stage.set_up("n1")
        before = await stage.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
        await stage.enter()
        await stage.run()
        assert await stage.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local") == before
        plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
        assert "provisionGeneration" not in objects.status(plan)
        assert objects.annotations_of(plan) == {}

    async def test_longhorns_interval_is_raised_all_the_same(self, stage: Stage) -> None:
        await stage.set_up("n1")
        name = {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"}
        await stage.cluster.put(LONGHORN_SETTINGS, {"metadata": name, "value": "600"})
        await stage.enter()
        setting = await stage.cluster.find(LONGHORN_SETTINGS, "replica-replenishment-wait-interval", "longhorn-system")
        assert setting["value"] == "1800"

    async def test_the_phase_does_not_end_before_rancher_has_cleared_its_question(self, stage: Stage) -> None:
        await stage.set_up("n1")
        await stage.enter()
        await stage.run()
        await stage.finish("n1", "single-node-upgrade", COMPLETE)
        await stage.reboot("n1")
        await stage.rancher("n1", post="{}")
        question = f"node n1: Secret fleet-local/s-n1 with rke.cattle.io/post-drain that does not ask for {POST}"
        waits = f"waiting for {question}: whoever set it has to answer or to remove it (1 of 1 nodes done)"
        assert await stage.run() == Waiting(message=waits)
        await stage.rancher("n1", post=None)
        assert await stage.run() == Completed()

    async def test_a_stale_question_of_rancher_is_not_answered(self, stage: Stage) -> None:
        await stage.set_up("n1")
        await stage.rancher("n1", pre=QUESTION, post=QUESTION)
        await stage.enter()
        await stage.run()
        assert await stage.cluster.names(JOBS) == ["up-node-upgrade-single-node-upgrade-n1"]
        assert await stage.answers("n1") == {}
        await stage.finish("n1", "single-node-upgrade", COMPLETE)
        await stage.reboot("n1")
        outcome = await stage.run()
        assert isinstance(outcome, Waiting)
        assert "Secret fleet-local/s-n1 with rke.cattle.io/post-drain, left by an earlier upgrade" in outcome.message
        assert await stage.answers("n1") == {}

    async def test_a_node_that_joins_before_the_phase_begins_makes_it_rancher_driven(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        scope = await stage.scope()
        scope.draft["singleNode"] = "n1"
        await scope.persist()
        await stage.enter()
        await stage.run()
        plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
        assert "singleNode" not in objects.status(plan)
        assert await stage.generation() == 5

    async def test_a_node_that_is_alone_when_the_phase_begins_is_upgraded_by_one_job(self, stage: Stage) -> None:
        await stage.set_up("n1")
        await stage.enter()
        assert objects.status(await stage.cluster.client.get(UPGRADE_PLANS, "up"))["singleNode"] == "n1"

    async def test_a_node_that_joins_later_takes_no_part_and_changes_nothing(self, stage: Stage) -> None:
        await stage.set_up("n1")
        await stage.enter()
        await stage.run()
        await stage.cluster.nodes("n2")
        await stage.machine("n2")
        await stage.rancher("n2", pre=QUESTION)
        await stage.run()
        assert await stage.states() == {"n1": "SingleNodeUpgrading"}
        await stage.finish("n1", "single-node-upgrade", COMPLETE)
        await stage.reboot("n1")
        assert await stage.run() == Completed()
        assert await stage.generation() == 4

    async def test_a_node_that_is_gone_is_named(self, stage: Stage) -> None:
        await stage.set_up("n1")
        await stage.enter()
        await stage.run()
        await stage.cluster.client.delete(NODES, "n1")
        with pytest.raises(BadCluster, match="Node n1 does not exist"):
            await stage.run()

    async def test_a_failed_job_fails_the_plan(self, stage: Stage) -> None:
        await stage.set_up("n1")
        await stage.enter()
        await stage.run()
        reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "no luck"}
        await stage.finish("n1", "single-node-upgrade", {"conditions": [reason], "failed": 3})
        assert await stage.run() == Failed(
            cause="node n1 upgrade failed: Job harvester-system/up-node-upgrade-single-node-upgrade-n1 failed: "
            "BackoffLimitExceeded: no luck"
        )
        assert await stage.states() == {"n1": "SingleNodeUpgradeFailed"}


class TestFailure:
    async def test_the_plan_fails_with_the_node_and_the_cause(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        await stage.run()
        await stage.rancher("n1", pre=QUESTION)
        await stage.run()
        reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        await stage.finish("n1", "pre-drain", {"conditions": [reason], "failed": 3})
        assert await stage.run() == Failed(
            cause="node n1 upgrade failed: Job harvester-system/up-node-upgrade-pre-drain-n1 failed: "
            "BackoffLimitExceeded"
        )
        assert await stage.states() == {"n1": "PreDrainFailed", "n2": "ImagePreloaded"}
        assert await stage.answers("n1") == {}

    async def test_each_failed_attempt_shows_at_the_node_while_the_job_retries(self, stage: Stage) -> None:
        await stage.set_up("n1", "n2")
        await stage.enter()
        await stage.run()
        await stage.rancher("n1", pre=QUESTION)
        await stage.run()
        await stage.finish("n1", "pre-drain", {"failed": 2})
        outcome = await stage.run()
        plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
        assert plan["status"]["nodeUpgradeStatuses"]["n1"]["message"] == "2 failed attempts so far"
        assert isinstance(outcome, Waiting)
        assert "2 failed attempts so far" in outcome.message


class TestPause:
    """The node upgrade with a list of nodes to hold back; between any two writes the manager may die."""

    async def listing(self, stage: Stage, *nodes: str) -> None:
        patch = MergePatch({"spec": {"nodeUpgradeOption": {"pauseNodes": list(nodes)}}})
        await stage.cluster.client.patch(UPGRADE_PLANS, "up", patch)

    async def suspend(self, stage: Stage, node: str) -> Any:
        return objects.spec(await stage.cluster.find(JOBS, f"up-node-upgrade-pre-drain-{node}", PLACE)).get("suspend")

    async def begun(self, stage: Stage, *nodes: str) -> None:
        await stage.set_up("n1", "n2", "n3")
        await stage.enter()
        await stage.run()
        await self.listing(stage, *nodes)

    @pytest.mark.parametrize("record", [True, False], ids=["recorded", "killed before every record"])
    async def test_held_back_and_let_go(self, stage: Stage, record: bool) -> None:  # noqa: FBT001  # a table
        await self.begun(stage, "n1")
        await stage.rancher("n1", pre=QUESTION)
        for _ in range(3):
            outcome = await stage.run(record=record)
            assert await self.suspend(stage, "n1") is True
            assert outcome == Waiting(
                message="waiting for node n1 to be taken off spec.nodeUpgradeOption.pauseNodes (0 of 3 nodes done)"
            )
        await self.listing(stage)
        outcome = await stage.run(record=record)
        assert await self.suspend(stage, "n1") is False
        assert (await stage.states())["n1"] == "PreDraining"
        job = "Job harvester-system/up-node-upgrade-pre-drain-n1"
        assert outcome == Waiting(message=f"waiting for node n1: {job} (0 of 3 nodes done)")
        # It has started: listing it once more does not stop it.
        await self.listing(stage, "n1")
        await stage.run(record=record)
        assert await self.suspend(stage, "n1") is False
        await stage.finish("n1", "pre-drain", COMPLETE)
        await stage.run()
        assert await stage.answers("n1") == {PRE: QUESTION}
        assert len(await stage.cluster.names(JOBS)) == 1
        assert stage.warned() == []

    async def test_rancher_gets_no_answer_meanwhile(self, stage: Stage) -> None:
        await self.begun(stage, "n1")
        await stage.rancher("n1", pre=QUESTION)
        for _ in range(3):
            await stage.run()
        assert await stage.answers("n1") == {}
        assert (await stage.states())["n1"] == "UpgradePaused"

    async def test_a_name_that_was_added_after_the_plan_was_read_is_seen_before_the_node_begins(
        self, stage: Stage
    ) -> None:
        await self.begun(stage)
        await stage.rancher("n1", pre=QUESTION)
        scope = await stage.scope()
        await self.listing(stage, "n1")
        with pytest.raises(Conflict):
            await stage.phase.run(scope)
        assert await stage.cluster.names(JOBS) == []
        await stage.run()
        assert await self.suspend(stage, "n1") is True

    async def test_killed_between_the_record_and_the_resumption_it_goes_on_although_listed_again(
        self, stage: Stage
    ) -> None:
        await self.begun(stage, "n1")
        await stage.rancher("n1", pre=QUESTION)
        await stage.run()
        await self.listing(stage)
        scope = await stage.scope()
        scope.draft.move_node("n1", NodeState.PRE_DRAINING)
        await scope.persist()
        await self.listing(stage, "n1")
        await stage.run()
        assert await self.suspend(stage, "n1") is False

    async def test_a_suspended_job_that_vanishes_is_made_again_and_one_to_be_resumed_too(self, stage: Stage) -> None:
        await self.begun(stage, "n1")
        await stage.rancher("n1", pre=QUESTION)
        await stage.run()
        job = "up-node-upgrade-pre-drain-n1"
        await stage.cluster.client.delete(JOBS, job, namespace=PLACE)
        await stage.run()
        assert await self.suspend(stage, "n1") is True
        await self.listing(stage)
        await stage.cluster.client.delete(JOBS, job, namespace=PLACE)
        await stage.run()
        assert not await self.suspend(stage, "n1")

    async def test_the_message_names_who_is_held_back_beside_who_is_under_way(self, stage: Stage) -> None:
        await self.begun(stage, "n1", "n3")
        for node in ("n1", "n2", "n3"):
            await stage.rancher(node, pre=QUESTION)
        outcome = await stage.run()
        job = "Job harvester-system/up-node-upgrade-pre-drain-n2"
        held = "nodes n1, n3 to be taken off spec.nodeUpgradeOption.pauseNodes"
        assert await stage.states() == {"n1": "UpgradePaused", "n2": "PreDraining", "n3": "ImagePreloaded"}
        assert isinstance(outcome, Waiting)
        assert outcome.message.startswith("waiting for node n1 to be taken off")
        assert f"node n2: {job}" in outcome.message
        await stage.finish("n2", "pre-drain", COMPLETE)
        await stage.run()
        await stage.rancher("n2", post=QUESTION)
        await stage.run()
        await stage.finish("n2", "post-drain", COMPLETE)
        await stage.reboot("n2")
        await stage.run()
        outcome = await stage.run()
        assert outcome == Waiting(message=f"waiting for {held} (1 of 3 nodes done)")

    async def test_let_go_while_another_node_is_away_it_waits_for_its_turn(self, stage: Stage) -> None:
        await self.begun(stage, "n1")
        await stage.rancher("n1", pre=QUESTION)
        await stage.rancher("n2", pre=QUESTION)
        await stage.run()
        await stage.run()
        await self.listing(stage)
        outcome = await stage.run()
        assert await self.suspend(stage, "n1") is True
        assert isinstance(outcome, Waiting)
        assert "node n2 to be done before node n1" in outcome.message

    async def test_a_node_that_leaves_while_it_is_held_back_holds_up_nobody(self, stage: Stage) -> None:
        await self.begun(stage, "n1")
        await stage.rancher("n1", pre=QUESTION)
        await stage.run()
        await stage.cluster.client.delete(NODES, "n1")
        await stage.rancher("n2", pre=QUESTION)
        outcome = await stage.run()
        assert (await stage.states())["n2"] == "PreDraining"
        assert isinstance(outcome, Waiting)
        assert "names n1, which no managed node is called" in outcome.message


class TestRestore:
    async def back(self, stage: Stage, *nodes: str) -> None:
        """All nodes but the last have been upgraded up to their reboot, with VMs listed for them."""
        await stage.set_up(*nodes)
        patch = MergePatch({"spec": {"restoreVM": True}})
        await stage.cluster.client.patch(UPGRADE_PLANS, "up", patch)
        await stage.enter()
        await stage.run()
        data = {node: f"default/vm-{node}" for node in nodes}
        await stage.cluster.put(CONFIG_MAPS, {"metadata": {"name": "up-restore-vm", "namespace": PLACE}, "data": data})
        await stage.rancher(nodes[0], pre=QUESTION)
        await stage.run()
        await stage.finish(nodes[0], "pre-drain", COMPLETE)
        await stage.run()
        await stage.rancher(nodes[0], post=QUESTION)
        await stage.run()
        await stage.finish(nodes[0], "post-drain", COMPLETE)
        await stage.run()
        assert "restore-vm" not in "".join(await stage.cluster.names(JOBS))
        await stage.reboot(nodes[0])

    @pytest.mark.parametrize("deaths", [0, 3], ids=["recorded", "killed before the record, three times"])
    async def test_there_is_one_job_and_none_after_the_record(self, stage: Stage, deaths: int) -> None:
        await self.back(stage, "n1", "n2")
        for _ in range(deaths):
            await stage.run(record=False)
        await stage.run()
        job = "up-node-upgrade-restore-vm-n1"
        assert job in await stage.cluster.names(JOBS)
        await stage.cluster.client.delete(JOBS, job, namespace=PLACE)
        await stage.run()
        assert job not in await stage.cluster.names(JOBS)
        assert stage.warned() == []

    async def test_the_next_node_begins_while_vms_are_started(self, stage: Stage) -> None:
        await self.back(stage, "n1", "n2")
        await stage.rancher("n2", pre=QUESTION)
        await stage.run()
        await stage.run()
        assert await stage.states() == {"n1": "PostDrained", "n2": "PreDraining"}

    async def test_an_error_holds_up_neither_rancher_nor_the_next_node_and_is_tried_again(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await self.back(stage, "n1", "n2")
        await stage.rancher("n2", pre=QUESTION)

        async def fails(*_: Any, **__: Any) -> Any:
            raise Transient("no answer")

        with monkeypatch.context() as broken:
            broken.setattr("upgrade_manager.pipeline.vmrestore._is_listed", fails)
            with pytest.raises(Transient):
                await stage.run()
        assert await stage.answers("n1") == {PRE: QUESTION, POST: QUESTION}
        assert "up-node-upgrade-pre-drain-n2" in await stage.cluster.names(JOBS)
        assert (await stage.states())["n1"] == "WaitingReboot"
        await stage.run()
        assert (await stage.states())["n1"] == "PostDrained"
        assert "up-node-upgrade-restore-vm-n1" in await stage.cluster.names(JOBS)

    async def test_its_failure_fails_neither_the_node_nor_the_plan(self, stage: Stage) -> None:
        await self.back(stage, "n1", "n2")
        await stage.run()
        reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        await stage.finish("n1", "restore-vm", {"conditions": [reason], "failed": 3})
        for _ in range(3):
            assert isinstance(await stage.run(), Waiting)
        plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
        job = "Job harvester-system/up-node-upgrade-restore-vm-n1 failed: BackoffLimitExceeded"
        message = f"its VMs were not all started again: {job}"
        assert plan["status"]["nodeUpgradeStatuses"]["n1"] == {"state": "PostDrained", "message": message}
        assert {reason for reason, _ in stage.warned()} == {"RestoreVMFailed"}
        assert len({name for _, name in stage.warned()}) == 1

    async def test_the_failure_of_another_node_is_not_mistaken_for_it(self, stage: Stage) -> None:
        await self.back(stage, "n1", "n2")
        await stage.rancher("n2", pre=QUESTION)
        await stage.run()
        await stage.run()
        reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        await stage.finish("n1", "restore-vm", {"conditions": [reason]})
        await stage.finish("n2", "pre-drain", {"conditions": [reason]})
        outcome = await stage.run()
        assert isinstance(outcome, Failed)
        assert outcome.cause.startswith(
            "node n2 upgrade failed: Job harvester-system/up-node-upgrade-pre-drain-n2 failed"
        )
