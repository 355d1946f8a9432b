from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.kinds import controller_reference
from tests.blockers.conftest import FakeView
from tests.support.managers.phase_results import shown
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.imports import FINDERS
from upgrade_manager.kube.resources import PERSISTENT_VOLUME_CLAIMS, UPGRADE_PLANS, VERSIONS, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.iso_download import ISODownload

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object

SOURCE = {"version": {"isoURL": "https://x/a.iso", "isoChecksum": "ab" * 64}}
IMPORT_FAILED = "VirtualMachineImage harvester-system/up-iso: import failed"
OLD_SOURCE = {"isoURL": "old"}
CHECK = "Check the Version's spec.isoURL and spec.isoChecksum, then retry"
SPEC = {"sourceType": "download", "displayName": "d", "backend": "cdi", "retry": 3, "url": "", "checksum": ""}


def true(type_: str, status: str = "True", **more: str) -> Object:
    return {"type": type_, "status": status, **more}


async def image(cluster: Harvester, name: str, *conditions: Object, owner: Object | None = None, **status: Any) -> None:
    metadata = {"name": name, "namespace": "harvester-system", "ownerReferences": [owner] if owner else []}
    manifest = {"metadata": metadata, "spec": SPEC, "status": {"conditions": list(conditions), **status}}
    await cluster.put(VIRTUAL_MACHINE_IMAGES, manifest)


@pytest.mark.rule(
    "api: isoImageID is the name of an image in harvester-system",
    "api: once the snapshot is recorded the Version is not read again",
    "pipeline: ISODownload creates the image from the Version once",
)
async def test_image_is_created_once(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(status=SOURCE))
    expected = Waiting(waits=(), message="VirtualMachineImage harvester-system/up-iso: importing, 0 %")
    for _ in range(2):
        assert shown(await ISODownload().run(ctx)) == expected
    assert await cluster.names(VIRTUAL_MACHINE_IMAGES) == ["up-iso"]
    assert ctx.status["isoImageID"] == "up-iso"


@pytest.mark.rule(
    "api: image names a VirtualMachineImage that exists",
    "api: an image without namespace is in harvester-system",
    "api: image may include a namespace",
    "api: isoImageID is the name of an image in harvester-system",
    "pipeline: ISODownload adopts spec.image and creates no image",
)
@pytest.mark.parametrize("named", ["mine", "harvester-system/mine"], ids=["by its bare name", "with the namespace"])
async def test_named_image_is_adopted(cluster: Harvester, named: str) -> None:
    await image(cluster, "mine", true("Imported"))
    await cluster.put(
        PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "mine", "namespace": "harvester-system"}, "spec": CLAIM}
    )
    ctx = cluster.context(await cluster.plan(spec={"image": named}))
    assert await ISODownload().run(ctx) == Completed()
    assert ctx.status["isoImageID"] == "mine"
    assert await cluster.names(VIRTUAL_MACHINE_IMAGES) == ["mine"]


@pytest.mark.rule(
    "api: image names a VirtualMachineImage that exists",
    "api: waiting is not an error",
    "pipeline: ISODownload adopts spec.image and creates no image",
)
async def test_missing_named_image_is_awaited(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(spec={"image": "mine"}))
    outcome = await ISODownload().run(ctx)
    assert isinstance(outcome, Waiting)
    assert "harvester-system/mine does not exist" in outcome.message
    assert await cluster.names(VIRTUAL_MACHINE_IMAGES) == []


@pytest.mark.rule("pipeline: a retry of a failed import reads the Version again")
@pytest.mark.parametrize(
    ("spec", "found", "expected"),
    [
        ({"version": "v2"}, {"isoURL": "new", "isoChecksum": "x"}, {"isoURL": "new", "isoChecksum": "x"}),
        ({"version": "v2"}, {"isoURL": ""}, OLD_SOURCE),
        ({"version": "v2"}, None, OLD_SOURCE),
        ({"image": "mine"}, {"isoURL": "new"}, OLD_SOURCE),
    ],
    ids=["corrected", "without URL", "deleted", "plan of an image"],
)
async def test_retry_reads_the_version_again(
    cluster: Harvester, spec: dict[str, Any], found: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    if found is not None:
        await cluster.put(VERSIONS, {"metadata": {"name": "v2", "namespace": "harvester-system"}, "spec": found})
    ctx = cluster.context(await cluster.plan(spec=spec, status={"version": OLD_SOURCE}))
    assert await ISODownload().resume(ctx) is None
    assert ctx.status["version"] == expected


CLAIM = {
    "accessModes": ["ReadWriteMany"],
    "volumeMode": "Filesystem",
    "storageClassName": "longhorn-static",
    "resources": {"requests": {"storage": "7Gi"}},
}


@pytest.mark.rule("api: an image whose volume several Pods cannot mount fails the plan with the remedy")
@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        pytest.param({"accessModes": ["ReadOnlyMany"]}, "", id="read-only-many"),
        pytest.param({"accessModes": ["ReadWriteOnce"]}, "(it is ReadWriteOnce Filesystem)", id="one node"),
        pytest.param({"volumeMode": "Block"}, "(it is ReadWriteMany Block)", id="block device"),
        pytest.param(None, "(it does not exist)", id="backing image"),
    ],
)
async def test_volume_of_a_named_image_is_checked(
    cluster: Harvester, claim: dict[str, Any] | None, problem: str
) -> None:
    await image(cluster, "mine", true("Imported"))
    if claim:
        metadata = {"name": "mine", "namespace": "harvester-system"}
        await cluster.put(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": CLAIM | claim})
    result = await ISODownload().run(cluster.context(await cluster.plan(spec={"image": "mine"})))
    if problem:
        assert isinstance(result, Failed)
        assert "harvester-system/mine: several Pods cannot mount its PersistentVolumeClaim" in result.cause
        assert problem in result.cause
        assert 'harvesterhci.io/os-upgrade-image: "True", under the same name, then retry' in result.advice
    else:
        assert result == Completed()


row = pytest.param
FAILED = true("RetryLimitExceeded", "False", message="503")
FAILURE = "the last attempt failed: 503"
LIMIT, REASON = true("RetryLimitExceeded", message="bad checksum"), true("RetryLimitExceeded", reason="X")
UPLOAD = true("Imported", "False", reason="UploadFailed")


@pytest.mark.rule(
    "api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for",
    "pipeline: ISODownload completes when Imported is True",
    "pipeline: ISODownload fails when RetryLimitExceeded is True",
    "pipeline: a failed import attempt that is retried does not fail ISODownload",
)
@pytest.mark.parametrize(
    ("conditions", "status", "outcome"),
    [
        row([true("Imported")], {}, Completed(), id="imported"),
        row([true("Imported"), LIMIT], {}, Completed(), id="imported after all"),
        row([], {}, "importing, 0 %", id="not begun"),
        row([true("Imported", "Unknown")], {"progress": 47}, "importing, 40 %", id="under way"),
        row(
            [FAILED],
            {"failed": 2, "progress": 10},
            "importing, attempt 3 of 4 (the last attempt failed: 503), 10 %",
            id="retry",
        ),
        row([], {"failed": 1}, "importing, attempt 2 of 4 (the last attempt failed), 0 %", id="without a message"),
        row(
            [FAILED],
            {"failed": 4},
            "importing, attempt 4 of 4 (the last attempt failed: 503), 0 %",
            id="the last attempt",
        ),
        row([UPLOAD], {}, "up-iso: upload failed (UploadFailed). Upload the image again", id="a failed upload"),
        row(
            [LIMIT],
            {"failed": 4},
            Failed(cause=f"{IMPORT_FAILED}: bad checksum", advice=CHECK),
            id="no attempt is left",
        ),
        row([REASON], {}, Failed(cause=f"{IMPORT_FAILED}: X", advice=CHECK), id="with a reason only"),
    ],
)
async def test_image_conditions_decide(
    cluster: Harvester, conditions: list[Object], status: Object, outcome: Any
) -> None:
    plan = await cluster.plan(status=SOURCE)
    await image(cluster, "up-iso", *conditions, owner=controller_reference(UPGRADE_PLANS, plan), **status)
    found = await ISODownload().run(cluster.context(plan))
    if isinstance(outcome, str):
        assert isinstance(found, Waiting)
        assert found.message.startswith("VirtualMachineImage harvester-system/up-iso")
        assert outcome in found.message
    else:
        assert found == outcome


@pytest.mark.rule("blockers: a failed upload is a blocker at once, with the words of the progress")
async def test_failed_upload_has_one_explanation(cluster: Harvester) -> None:
    plan = await cluster.plan(status=SOURCE)
    failed = {**UPLOAD, "message": "unexpected EOF"}
    await image(cluster, "up-iso", failed, owner=controller_reference(UPGRADE_PLANS, plan))
    found = await ISODownload().run(cluster.context(plan))
    assert isinstance(found, Waiting)
    view = FakeView()
    view.found["VirtualMachineImage"] = [*(await cluster.client.list(VIRTUAL_MACHINE_IMAGES)).items]
    view.now = found.waits[0].since
    (blocker,) = find_blockers(FINDERS, view, found.waits, []).blockers
    assert f"{blocker.message}. {blocker.remedy}" == found.message
    assert blocker.remedy == "Upload the image again"


async def test_foreign_image_is_not_adopted(cluster: Harvester) -> None:
    await image(cluster, "up-iso", true("Imported"))
    with pytest.raises(ForeignObject, match="was not created by this plan"):
        await ISODownload().run(cluster.context(await cluster.plan(status=SOURCE)))
