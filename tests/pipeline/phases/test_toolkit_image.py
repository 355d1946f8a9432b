from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.harvester import RECORDED, RELEASE
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND, ToolkitKind
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED
from upgrade_manager.api.toolkit_image import ToolkitConfig
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.phases import toolkit_image

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

DIGEST = "sha256:" + "a" * 64
PUBLISHED = "rancher/harvester-upgrade-toolkit"
IMAGE, KIND = ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND
#: Flags that choose another image for every plan.
OWN = ToolkitConfig(version="v0.0.0", kind=ToolkitKind.OWN, image=ImageName(repository="me/own"))
#: status.toolkitImage of a plan with the annotation.
ANNOTATED = {**RECORDED, "annotatedImage": "me/toolkit"}
MOVING = (
    f"Toolkit image {PUBLISHED}:v1.7.0 (kind harvester), not pinned: a push to the registry can move the tag. The plan "
    "was created by: alice"
)
PINNED = (
    f"Toolkit image {PUBLISHED}@{DIGEST} (kind own), pinned by its digest. spec.upgrade fix has no effect on the "
    "toolkit image, which the digest of the manager's --toolkit-image decides. The plan was created by: not recorded"
)
GUESS = (
    "The toolkit image's tag v1.7.0 is a guess, the manager's version, because an image plan names no release. If the "
    "registry lacks it, create a plan with spec.upgrade set to the toolkit's tag"
)


async def planned(
    cluster: Harvester, annotations: dict[str, str], *, phase: str = "Initializing", **plan: Any
) -> ReconcileContext:
    raw = await cluster.plan(status={"currentPhase": phase, **plan.pop("status", {})}, **plan)
    raw["metadata"]["annotations"] = annotations
    return cluster.context(raw)


def warnings(cluster: Harvester) -> list[str]:
    return [message for reason, message in cluster.recorder.recorded if reason == "ToolkitChangeIgnored"]


class TestRecord:
    @pytest.mark.rule("workloads: the toolkit image is decided once: what is recorded is kept")
    async def test_first_decision_is_kept(self, cluster: Harvester) -> None:
        ctx = await planned(cluster, {}, toolkit=None)
        assert toolkit_image.record(ctx) == ()
        assert ctx.status["toolkitImage"] == RECORDED
        ctx.settings = replace(ctx.settings, toolkit=OWN)
        assert toolkit_image.record(ctx) == ()
        assert ctx.status["toolkitImage"] == RECORDED

    async def test_refused_plan_records_nothing(self, cluster: Harvester) -> None:
        ctx = await planned(cluster, {IMAGE: "me/x:v1", KIND: "mine"}, toolkit=None)
        problems = await toolkit_image.ensure(ctx)
        assert [problem.split()[1] for problem in problems] == [IMAGE, KIND]
        assert ctx.status["toolkitImage"] is None
        assert cluster.recorder.recorded == []

    @pytest.mark.rule("workloads: the toolkit image is recorded before anything is created, and nothing else is used")
    async def test_ensured_record_is_written_and_reported(self, cluster: Harvester) -> None:
        ctx = await planned(cluster, {}, toolkit=None)
        assert await toolkit_image.ensure(ctx) == ()
        stored = await cluster.find(UPGRADE_PLANS, "up")
        assert objects.status(stored)["toolkitImage"] == RECORDED
        assert [reason for reason, _ in cluster.recorder.recorded] == ["ToolkitImageChosen"]
        await toolkit_image.ensure(ctx)
        again = await cluster.find(UPGRADE_PLANS, "up")
        assert objects.resource_version(again) == objects.resource_version(stored)
        assert len(cluster.recorder.recorded) == 1


class TestReport:
    @pytest.mark.rule("workloads: the event ToolkitImageChosen names the image, whether it can change, and the creator")
    @pytest.mark.parametrize(
        ("recorded", "creator", "spec", "messages"),
        [
            pytest.param({}, "alice", {}, {"ToolkitImageChosen": MOVING}, id="a tag"),
            pytest.param(
                {"digest": DIGEST, "kind": "own"}, "", {"upgrade": "fix"}, {"ToolkitImageChosen": PINNED}, id="a digest"
            ),
            pytest.param(
                {"guessed": True},
                "alice",
                {},
                {"ToolkitImageChosen": MOVING, "ToolkitTagGuessed": GUESS},
                id="a guess",
            ),
        ],
    )
    async def test_image_is_reported_once(
        self, cluster: Harvester, recorded: Object, creator: str, spec: Object, messages: dict[str, str]
    ) -> None:
        status = {"createdBy": creator} if creator else {}
        ctx = await planned(
            cluster, {}, toolkit={**RECORDED, **recorded}, spec={"version": "v1.7.0", **spec}, status=status
        )
        for _ in range(2):
            toolkit_image.report(ctx)
        assert dict(cluster.recorder.recorded) == messages
        assert len(cluster.recorder.recorded) == len(messages)

    async def test_unwritten_record_is_not_reported(self, cluster: Harvester) -> None:
        ctx = await planned(cluster, {}, toolkit=None)
        toolkit_image.record(ctx)
        toolkit_image.report(ctx)
        toolkit_image.report_changes(ctx)
        assert cluster.recorder.recorded == []


class TestChanges:
    @pytest.mark.rule("api: a change of upgrade-toolkit-image or -kind is a Warning event, and has no effect")
    @pytest.mark.parametrize("phase", [*PHASE_VALUES, SUCCEEDED])
    async def test_change_in_any_phase_is_one_warning(self, cluster: Harvester, phase: str) -> None:
        ctx = await planned(cluster, {IMAGE: "me/other", KIND: "own"}, phase=phase)
        for _ in range(2):
            toolkit_image.report_changes(ctx)
        image, kind = dict.fromkeys(warnings(cluster))
        assert image == (
            f"Annotation {IMAGE} was changed from unset to me/other after the toolkit image was decided. That has no "
            f"effect on this upgrade, which uses {PUBLISHED}:v1.7.0"
        )
        assert kind.startswith(f"Annotation {KIND} was changed from unset to own after")
        # One name for all phases: the API server and the recorder refuse a second event of that name.
        assert len(set(cluster.recorder.names)) == 2
        assert all(name.startswith("up.01.") for name in cluster.recorder.names)

    @pytest.mark.rule("api: upgrade-toolkit-image and -kind may change before acceptance and after a failure")
    @pytest.mark.parametrize("phase", ["", FAILED], ids=["before acceptance", "Failed"])
    async def test_change_outside_the_attempt_is_not_a_warning(self, cluster: Harvester, phase: str) -> None:
        toolkit_image.report_changes(await planned(cluster, {IMAGE: "me/other"}, phase=phase))
        assert warnings(cluster) == []

    @pytest.mark.parametrize(
        ("now", "expected"),
        [
            pytest.param("me/toolkit", [], id="unchanged"),
            pytest.param(None, ["from me/toolkit to unset"], id="removed"),
            pytest.param("me/toolkit:v2", ["from me/toolkit to me/toolkit:v2"], id="an invalid value"),
        ],
    )
    async def test_values_are_those_at_the_decision(
        self, cluster: Harvester, now: str | None, expected: list[str]
    ) -> None:
        ctx = await planned(cluster, {} if now is None else {IMAGE: now}, toolkit=ANNOTATED)
        # Other flags are no change of the plan.
        ctx.settings = replace(ctx.settings, toolkit=OWN)
        toolkit_image.report_changes(ctx)
        changes = [one.partition(" was changed ")[2].partition(" after ")[0] for one in warnings(cluster)]
        assert changes == expected


class TestAdopt:
    @pytest.mark.rule("workloads: an upgrade that version 0.1 began keeps its image: repository and tag by its rule")
    @pytest.mark.parametrize("phase", [value for value in PHASE_VALUES if value != "Initializing"])
    async def test_running_upgrade_gets_a_record(self, cluster: Harvester, phase: str) -> None:
        ctx = await planned(
            cluster,
            {IMAGE: f"me/x@{DIGEST}"},
            phase=phase,
            toolkit=None,
            spec={"image": "iso"},
            status={"releaseMetadata": RELEASE},
        )
        assert toolkit_image.adopt(ctx)
        recorded = {"repository": "me/x", "tag": "v1.7.0", "kind": "harvester", "annotatedImage": f"me/x@{DIGEST}"}
        assert ctx.status["toolkitImage"] == recorded
        assert not toolkit_image.adopt(ctx)

    async def test_initialize_decides_by_the_new_rule(self, cluster: Harvester) -> None:
        assert not toolkit_image.adopt(await planned(cluster, {}, toolkit=None))

    async def test_invalid_annotation_stays_an_error(self, cluster: Harvester) -> None:
        with pytest.raises(RetryError, match="upgrade-toolkit-image"):
            toolkit_image.adopt(await planned(cluster, {IMAGE: "$(id)"}, phase="RepoCreating", toolkit=None))
