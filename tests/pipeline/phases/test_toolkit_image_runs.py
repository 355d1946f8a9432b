"""Whole upgrades with the toolkit images of annotations and flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.simulation import Simulation
from tests.support.managers.histories import REPORTS
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, condition, started
from tests.support.webhook.policy_prefixes import image_prefixes
from upgrade_manager import __version__
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import (
    ANNOTATION_CREATED_BY,
    ANNOTATION_TOOLKIT_IMAGE,
    ANNOTATION_TOOLKIT_KIND,
    ToolkitKind,
)
from upgrade_manager.api.toolkit_image import ToolkitConfig
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, SUC_PLANS, UPGRADE_PLANS

if TYPE_CHECKING:
    from tests.support.cluster.simulate import Simulate
    from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.full

DIGEST = "sha256:" + "a" * 64
PUBLISHED = "rancher/harvester-upgrade-toolkit"
IMAGE, KIND = ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND
#: A manager that allows the image of the annotation, and one that does not.
LAX = RunOptions(toolkit=ToolkitConfig(version=__version__, prefixes=("me", PUBLISHED)))
STRICT = RunOptions(toolkit=ToolkitConfig(version=__version__))
OWN = RunOptions(
    toolkit=ToolkitConfig(
        version=__version__, kind=ToolkitKind.OWN, image=ImageName(repository="me/own", digest=DIGEST), tag="v9"
    )
)


async def images(stage: UpgradeRun) -> set[str]:
    """Return the images of all Jobs and Deployments that exist, also of the system-upgrade-controller's Jobs."""
    workloads = [*(await stage.client.list(JOBS)).items, *(await stage.client.list(DEPLOYMENTS)).items]
    owned = [one for one in workloads if objects.name(one).startswith(("upgrade-", "apply-upgrade-"))]
    return {container["image"] for one in owned for container in objects.spec(one)["template"]["spec"]["containers"]}


async def suc_plans(stage: UpgradeRun) -> dict[str, Object]:
    return {objects.uid(one): objects.spec(one) for one in (await stage.client.list(SUC_PLANS)).items}


@pytest.mark.rule("workloads: a digest of the annotation or of --toolkit-image wins over every tag")
async def test_every_workload_of_an_upgrade_has_the_digest() -> None:
    seen: set[str] = set()
    versions: set[str] = set()
    async with (
        Simulation("three-nodes") as simulation,
        started(simulation, {**BY_VERSION, "upgrade": "fix"}, options=OWN) as stage,
    ):
        for phase in ("ImagePreloading", "ClusterUpgrading", "NodeUpgrading", "CleaningUp"):
            await stage.until(phase)
            seen |= await images(stage)
            versions |= {spec["version"] for spec in (await suc_plans(stage)).values()}
        plan = await stage.succeed()
    assert seen == {f"me/own@{DIGEST}"}
    assert versions == {"sha256-" + "a" * 12}
    recorded = {"repository": "me/own", "tag": "fix", "digest": DIGEST, "kind": "own"}
    assert objects.status(plan)["toolkitImage"] == recorded


@pytest.mark.rule(
    "workloads: two managers with other flags: the image that one has recorded is kept by the other",
    "api: createdBy is the annotation created-by at acceptance, and never changes",
)
@pytest.mark.servers
@pytest.mark.real_full
async def test_image_is_kept_by_a_manager_that_refuses_it(simulate: Simulate) -> None:
    annotations = {IMAGE: f"me/toolkit@{DIGEST}", KIND: "own", ANNOTATION_CREATED_BY: "alice"}
    async with simulate("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = LAX
        # The policies permit what one of both managers does.
        async with image_prefixes(simulation, *LAX.toolkit.prefixes):
            async with stage.life():
                await stage.create_plan(annotations=annotations)
                await stage.until("ImagePreloading")
                before = objects.status(await stage.plan())["toolkitImage"]
            stage.options = STRICT
            async with stage.life(seed="successor"):
                await stage.patch(metadata={"annotations": {IMAGE: "evil/toolkit", ANNOTATION_CREATED_BY: "mallory"}})
                plan = await stage.succeed()
                events = await stage.events("ToolkitChangeIgnored")
        status = objects.status(plan)
        assert status["toolkitImage"] == before
        assert (before["repository"], before["digest"], before["kind"]) == ("me/toolkit", DIGEST, "own")
        assert status["createdBy"] == "alice"
        assert [(event["type"], event["count"]) for event in events] == [("Warning", 1)]


@pytest.mark.rule(
    "workloads: a repository outside the prefixes is refused; by default both that are in use are allowed",
    "workloads: a refused toolkit image fails the plan in Initialize, with the cause and what to do",
)
@pytest.mark.servers
@pytest.mark.parametrize(
    ("annotations", "cause"),
    [
        pytest.param(
            {IMAGE: "me/toolkit"},
            f"Toolkit image me/toolkit is in none of the repositories that this manager allows: {PUBLISHED}. Use",
            id="outside the prefixes",
        ),
        pytest.param({KIND: "own"}, f"Name an image by annotation {IMAGE}", id="kind own"),
        pytest.param({IMAGE: f"{PUBLISHED}:v1"}, "a tag belongs in spec.upgrade", id="a tag"),
    ],
)
@pytest.mark.thin
async def test_refused_image_fails_the_plan(simulate: Simulate, annotations: dict[str, str], cause: str) -> None:
    async with simulate("one-node") as simulation:
        async with started(simulation, annotations=annotations) as stage:
            plan = await stage.fail()
        assert cause in condition(plan, "Progressing")[2]
        assert condition(plan, "Degraded")[:2] == ("True", "UpgradeFailed")
        assert "toolkitImage" not in objects.status(plan)
        assert [path for path, _ in stage.ledger.created if not path.endswith(REPORTS)] == []


@pytest.mark.rule("workloads: the tag of an image plan of kind harvester is a guess where nothing names it")
async def test_guess_is_in_status_and_an_event() -> None:
    async with Simulation("one-node") as simulation:
        async with started(simulation, BY_IMAGE) as stage:
            await stage.until("RepoCreating")
            plan = await stage.plan()
        events = await stage.events("ToolkitTagGuessed")
    recorded = {"repository": PUBLISHED, "tag": __version__, "kind": "harvester", "guessed": True}
    assert objects.status(plan)["toolkitImage"] == recorded
    assert [(event["type"], event["count"]) for event in events] == [("Normal", 1)]


@pytest.mark.rule("workloads: an upgrade that version 0.1 began keeps its image: repository and tag by its rule")
async def test_plan_of_an_earlier_version_keeps_its_image() -> None:
    async with Simulation("three-nodes") as simulation:
        async with started(simulation) as stage:
            await stage.until("ImagePreloading")
        before = await suc_plans(stage)
        unrecorded = MergePatch({"status": {"toolkitImage": None}})
        await stage.client.patch(UPGRADE_PLANS, stage.name, unrecorded, subresource="status")
        # Its flags choose another image for a new plan.
        stage.options = OWN
        async with stage.life(seed="successor"):
            await stage.until("ClusterUpgrading")
            after = await suc_plans(stage)
            plan = await stage.succeed()
    assert objects.status(plan)["toolkitImage"] == {"repository": PUBLISHED, "tag": "v1.8.0", "kind": "harvester"}
    assert before == after != {}
