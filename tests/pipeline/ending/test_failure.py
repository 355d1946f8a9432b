"""The next steps after a failure, by the phase that failed and by what is left."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.ending.test_held_nodes_found import NEWER, OLDER, ended, hold
from tests.support.managers.upgrade import condition
from upgrade_manager.api.keys import ANNOTATION_CREATED_BY, ANNOTATION_MIN_CERTS_DAYS, HARVESTER_SYSTEM
from upgrade_manager.api.next_steps import MAX_COMMAND, MAX_STEPS, step_entries
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline.ending import failure
from upgrade_manager.pipeline.outcome import Failed

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext

#: Characters that shells, and the echo of some, interpret.
QUOTED = 'it\'s "$HOME" \\n'
TIME = "2026-01-01T00:00:00Z"
CAUSE = Failed(cause="the disk is full", log="kubectl logs -n a job/b")
IMMUTABLE = Failed(cause="the release is the wrong one", immutable="spec.version")
RETRY = "upgrade-manager retry up"
BY_KUBECTL = 'kubectl patch upgradeplans.management.harvesterhci.io up --type=merge -p \'{"spec":{"attempt":2}}\''
CORRECT = "correct the cause, then retry"


def reached(*phases: str) -> dict[str, Any]:
    return {"phaseTransitionTimestamps": [{"phase": one, "phaseTransitionTimestamp": TIME} for one in phases]}


async def recorded(ctx: ReconcileContext, failed: Failed) -> dict[str, Any]:
    await failure.record(ctx, failed)
    await ctx.persist()
    return dict(objects.status(await ctx.client.get(UPGRADE_PLANS, "up")))


@pytest.mark.rule("api: failed: Degraded=True (UpgradeFailed) with the cause and what to do")
@pytest.mark.parametrize(
    ("phases", "todo", "unchanged"),
    [
        pytest.param((), f"Nothing was changed yet; {CORRECT}", "", id="Initialize"),
        pytest.param(
            ("Initializing", "Initialized", "ISODownloading"),
            f"Nothing was changed yet; {CORRECT}",
            "",
            id="ISODownload",
        ),
        pytest.param(
            ("MetadataPopulated", "ImagePreloading"),
            f"C{CORRECT[1:]}",
            "This plan has changed no component and no node; images that nodes have loaded stay there",
            id="ImagePreload",
        ),
        pytest.param(
            ("ImagePreloaded", "ClusterUpgrading"),
            f"C{CORRECT[1:]}",
            "This plan has upgraded no node. Components may run the new release already, and a retry upgrades the "
            "others",
            id="ClusterUpgrade",
        ),
        pytest.param(
            ("ClusterUpgraded", "NodeUpgrading"),
            f"C{CORRECT[1:]}",
            "Upgraded nodes keep the new release: n1",
            id="NodeUpgrade",
        ),
    ],
)
async def test_steps_depend_on_the_failed_phase(
    cluster: Harvester, phases: tuple[str, ...], todo: str, unchanged: str
) -> None:
    states = {"n1": {"state": "PostDrained"}, "n2": {"state": "ImagePreloaded"}} if len(phases) == 2 else {}
    ctx = await ended(cluster, {"n1": NEWER, "n2": NEWER}, hooks=False, nodeUpgradeStatuses=states, **reached(*phases))
    status = await recorded(ctx, CAUSE)
    assert condition({"status": status}, "Degraded") == ("True", "UpgradeFailed", f"the disk is full. {todo}: {RETRY}")
    assert condition({"status": status}, "Progressing")[2] == "the disk is full. Log: kubectl logs -n a job/b"
    texts = [step["text"] for step in status["nextSteps"]]
    *said, log, _ = texts
    assert said == list(filter(None, [todo, unchanged]))
    assert log == "The log of the failed Job has the cause"
    commands = [step.get("command") for step in status["nextSteps"]]
    assert [one for one in commands if one] == [RETRY, CAUSE.log, BY_KUBECTL]


async def test_advice_that_follows_the_cause_names_its_correction(cluster: Harvester) -> None:
    ctx = await ended(cluster, {"n1": NEWER}, hooks=False, **reached("Initializing"))
    status = await recorded(ctx, Failed(cause="x. Free it", advice="Then retry"))
    todo = f"Nothing was changed yet; {CORRECT}"
    assert condition({"status": status}, "Progressing")[2] == "x. Free it. Then retry"
    assert status["nextSteps"][0]["text"] == todo


async def test_held_nodes_stand_between_the_two_ways_to_retry(cluster: Harvester) -> None:
    states = {"n1": {"state": "PreDraining"}, "n2": {"state": "ImagePreloaded"}, "n3": {"state": "PostDrained"}}
    kubelets = {"n1": OLDER, "n2": OLDER, "n3": NEWER}
    ctx = await ended(cluster, kubelets, nodeUpgradeStatuses=states, **reached("NodeUpgrading"))
    await hold(cluster, "n1")
    status = await recorded(ctx, CAUSE)
    assert condition({"status": status}, "Available")[2] == (
        "Failed in NodeUpgrade: 1 of 3 nodes upgraded, n1 cordoned. Next step: see Degraded"
    )
    todo = f"Do not uncordon n1; {CORRECT}"
    assert condition({"status": status}, "Degraded")[2] == f"the disk is full. {todo}: {RETRY}"
    texts = [step["text"].partition(" ")[0] for step in status["nextSteps"]]
    assert texts == ["Do", "Upgraded", "Node", "Node", "The", "Or", "To"]
    assert status["nextSteps"][0]["text"] == todo


async def test_drain_hooks_are_not_removed_while_nodes_wait(cluster: Harvester) -> None:
    states = {"n1": {"state": "PostDrained"}, "n2": {"state": "ImagePreloaded"}}
    ctx = await ended(cluster, {"n1": NEWER, "n2": OLDER}, nodeUpgradeStatuses=states, **reached("NodeUpgrading"))
    status = await recorded(ctx, Failed(cause="x", advice="Check it, then retry"))
    assert condition({"status": status}, "Degraded")[2] == (
        f"x. Do not remove the drain hooks that hold n2; check it, then retry: {RETRY}"
    )


async def test_failed_check_of_a_later_attempt_names_its_correction(cluster: Harvester) -> None:
    ctx = await ended(cluster, {"n1": NEWER}, hooks=False, attempt=2, **reached("NodeUpgrading"))
    status = await recorded(ctx, Failed(cause="x. Free it", advice="Then retry"))
    assert status["nextSteps"][0] == {"text": f"C{CORRECT[1:]}", "command": RETRY}
    assert status["nextSteps"][-1]["command"].endswith("""-p '{"spec":{"attempt":3}}'""")


IMAGE = "The image of the ISO stays"
SOURCE = {"displayName": "iso", "sourceType": "download", "url": "https://x/iso"}
IN_EACH = "in each replica of its volume"
UNTIL = "until this plan is deleted or another one has passed its checks"


@pytest.mark.rule("api: a failed plan says how much room its payload takes, and until when")
@pytest.mark.parametrize(
    ("spec", "image", "kept"),
    [
        ({"version": "v1"}, {"status": {"size": 3 * 2**29}}, f"{IMAGE}, 1.5 GiB {IN_EACH}, {UNTIL}"),
        ({"version": "v1"}, {"status": {}}, f"{IMAGE} {UNTIL}"),
        ({"version": "v1"}, None, f"{IMAGE} {UNTIL}"),
        ({"image": "up-iso"}, {"status": {"size": 2**30}}, ""),
    ],
    ids=["its own image", "an image without size", "a missing image", "an image of the user"],
)
async def test_room_of_the_payload(
    cluster: Harvester, spec: dict[str, Any], image: dict[str, Any] | None, kept: str
) -> None:
    if image is not None:
        metadata = {"name": "up-iso", "namespace": HARVESTER_SYSTEM}
        await cluster.put(VIRTUAL_MACHINE_IMAGES, {"metadata": metadata, "spec": SOURCE, **image})
    status = {"isoImageID": "up-iso", **reached("Initialized", "ISODownloaded", "RepoCreating")}
    ctx = cluster.context(await cluster.plan(spec=spec, status=status))
    await failure.record(ctx, CAUSE)
    texts = [step["text"] for step in ctx.status["nextSteps"]]
    assert [text for text in texts if text.startswith(IMAGE)] == ([kept] if kept else [])
    todo = f"Nothing was changed yet; {CORRECT}: {RETRY}"
    said = condition({"status": {"conditions": ctx.status["conditions"]}}, "Degraded")[2]
    assert said == ". ".join(filter(None, ("the disk is full", kept, todo)))


@pytest.mark.parametrize(
    ("name", "following"),
    [("up", "up-2"), ("up-9", "up-10"), ("to-v1.8.0", "to-v1.8.0-2"), ("a" * 253, f"{'a' * 247}-2")],
    ids=["first", "numbered", "a version", "the longest"],
)
async def test_command_creates_the_same_plan_again(cluster: Harvester, name: str, following: str) -> None:
    raw = await cluster.plan(name, spec={"version": "v1.8.0", "force": True})
    annotations = {ANNOTATION_MIN_CERTS_DAYS: QUOTED, ANNOTATION_CREATED_BY: "root", "team": "a"}
    raw = await cluster.client.patch(UPGRADE_PLANS, name, MergePatch({"metadata": {"annotations": annotations}}))
    ctx = cluster.context(raw)
    await failure.record(ctx, IMMUTABLE)
    assert ctx.status["nextSteps"][-1]["text"] == (
        "A retry cannot change spec.version: create a new UpgradePlan. Set another spec.version in this command, which "
        "creates one"
    )
    assert ctx.status["nextSteps"][0] == {"text": "Nothing was changed yet; create a new UpgradePlan"}
    command = ctx.status["nextSteps"][-1]["command"]
    program, form, manifest, *rest = shlex.split(command)
    assert (program, form, rest) == ("printf", "%s", ["|", "kubectl", "create", "-f", "-"])
    plan = json.loads(manifest)
    assert plan["metadata"] == {"name": following, "annotations": {ANNOTATION_MIN_CERTS_DAYS: QUOTED}}
    assert plan["spec"] == objects.spec(raw)


async def test_failure_that_no_retry_mends_has_a_new_plan(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(spec={"version": "v1.8.0"}))
    await failure.record(
        ctx, Failed(cause="the image does not exist", advice="Create a new UpgradePlan", is_final=True)
    )
    first, last = ctx.status["nextSteps"]
    assert first == {"text": "Nothing was changed yet; create a new UpgradePlan"}
    assert last["text"] == "No retry can go on: create a new UpgradePlan. This command creates one"
    assert last["command"].startswith("printf %s '{")


async def test_long_spec_has_a_command_that_shows_it(cluster: Harvester) -> None:
    spec = {"version": "v1.8.0", "nodeUpgradeOption": {"pauseNodes": [f"node-{number:04}" for number in range(200)]}}
    ctx = cluster.context(await cluster.plan(spec=spec))
    await failure.record(ctx, IMMUTABLE)
    command = "kubectl get upgradeplans.management.harvesterhci.io up -o yaml"
    assert ctx.status["nextSteps"][-1]["command"] == command


def test_long_command_is_left_out_and_steps_are_bounded() -> None:
    step = Remedy("x", command="y" * (MAX_COMMAND + 1))
    assert step_entries([step] * MAX_STEPS) == [{"text": "x"}] * MAX_STEPS
    assert step_entries([Remedy("x", command="y" * MAX_COMMAND)]) == [{"text": "x", "command": "y" * MAX_COMMAND}]


async def test_steps_of_the_clean_up_follow_the_first(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan())
    await failure.record(ctx, CAUSE)
    before = list(ctx.status["nextSteps"])
    added = [Remedy(f"host {number}", command="rm x") for number in range(MAX_STEPS)]
    for _ in range(2):
        ctx.status.remind(added[:2])
    assert ctx.status["nextSteps"] == [before[0], added[0].entry(), added[1].entry(), *before[1:]]
    ctx.status.remind(added)
    assert len(ctx.status["nextSteps"]) == MAX_STEPS
