from __future__ import annotations

import json
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from hack.virtual_time import virtual_now
from tests.support.cluster.harvester import RELEASE
from tests.support.managers.phase_results import shown
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.errors import KubeError, PreconditionFailed, Throttled, Transient
from upgrade_manager.kube.resources import JOBS, PODS
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.outcome import Completed, Waiting
from upgrade_manager.pipeline.phases import iso_checksums
from upgrade_manager.pipeline.phases.metadata_populate import MetadataPopulate
from upgrade_manager.release.errors import BadRepository

if TYPE_CHECKING:
    from datetime import datetime

    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

PATH = "harvester-iso/harvester-release.yaml"
CONTENT = json.dumps(RELEASE).encode()
FILES = {
    "/harvester-release.yaml": sha256(CONTENT).hexdigest(),
    "/bundle/metadata.yaml": "ab" * 32,
    "/rootfs.squashfs": "cd" * 32,
}
JOB = "up-checksums"


async def started(cluster: Harvester, *, kind: str = "own") -> ReconcileContext:
    """Return the context of a plan whose repository serves the release."""
    cluster.files.answers[PATH] = CONTENT
    status = {
        "currentPhase": "MetadataPopulating",
        "isoImageID": "up-iso",
        "toolkitImage": {"repository": "r/toolkit", "tag": "v1", "kind": kind},
        "checksums": {"isoChecked": True},
        "phaseTransitionTimestamps": [
            {"phase": "MetadataPopulating", "phaseTransitionTimestamp": format_time(virtual_now())}
        ],
    }
    return cluster.context(await cluster.plan(status=status))


async def pod(cluster: Harvester, name: str, *, message: str, code: int = 0, uid: str = "", at: int = 0) -> None:
    """Create a terminated Pod of the Job."""
    job = await cluster.client.get(JOBS, JOB, namespace="harvester-system")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": JOB, "uid": uid or job["metadata"]["uid"]}
    metadata = {
        "name": name,
        "namespace": "harvester-system",
        "labels": {"batch.kubernetes.io/job-name": JOB},
        "ownerReferences": [owner | {"controller": True}],
    }
    ended = {"exitCode": code, "message": message, "reason": "x", "finishedAt": f"2026-01-01T00:00:{at:02}Z"}
    status = {"containerStatuses": [{"name": "apply", "state": {"terminated": ended}, "ready": False}]}
    for one in status["containerStatuses"]:
        one |= {"restartCount": 0, "image": "x", "imageID": "x"}
    spec = {"containers": [{"name": "apply", "image": "x"}]}
    await cluster.put(PODS, {"metadata": metadata, "spec": spec}, status=status)


async def end(cluster: Harvester, condition: str) -> None:
    """Give the Job its end."""
    condition_of: Object = {"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}
    condition_of |= dict.fromkeys(("lastProbeTime", "lastTransitionTime"), "2026-01-01T00:00:00Z")
    await cluster.finish(JOBS, JOB, "harvester-system", {"conditions": [condition_of]})


def later(ctx: ReconcileContext, **time: float) -> None:
    """Let time pass for the reconcile."""
    now = ctx.now() + timedelta(**time)

    def shifted() -> datetime:
        return now

    ctx.now = shifted
    ctx.status._now = shifted


@pytest.mark.rule(
    "pipeline: with our toolkit MetadataPopulate waits for a Job that computes checksums of the ISO's files",
    "api: checksums has the files' SHA-256, or why they are not checked",
)
async def test_result_of_the_job_is_recorded_and_passed_on(cluster: Harvester) -> None:
    ctx = await started(cluster)
    first = await MetadataPopulate().run(ctx)
    message = f"Job harvester-system/{JOB}: attempt 1 of 3"
    assert shown(first) == Waiting(waits=(), message=message, detail="waiting for its Pod")
    again = await MetadataPopulate().run(ctx)
    assert isinstance(again, Waiting)
    assert again.message == message
    assert [wait.name for wait in again.waits] == [JOB]
    assert cluster.files.requests == []
    await pod(cluster, "a", message=json.dumps(FILES))
    await end(cluster, "Complete")
    assert await MetadataPopulate().run(ctx) == Completed()
    assert ctx.status["checksums"] == {"isoChecked": True, "checked": True, "files": FILES}
    assert ctx.status["releaseMetadata"] == RELEASE
    assert ctx.job_settings.checksums == ctx.plan_settings.checksums == FILES
    assert await cluster.names(JOBS, "harvester-system") == [JOB]
    assert cluster.recorder.recorded == []


@pytest.mark.rule("pipeline: with Harvester's toolkit no checksums are computed, and checksums says so")
@pytest.mark.parametrize("kind", ["harvester", ""])
async def test_harvesters_toolkit_needs_no_job(cluster: Harvester, kind: str) -> None:
    ctx = await started(cluster, kind=kind)
    assert await MetadataPopulate().run(ctx) == Completed()
    found = {"isoChecked": True, "checked": False, "message": iso_checksums.HARVESTERS_TOOLKIT}
    assert ctx.status["checksums"] == found
    assert ctx.job_settings.checksums == {}
    assert await cluster.names(JOBS, "harvester-system") == []
    assert cluster.recorder.recorded == []


INVALID = f"Job harvester-system/{JOB} has an invalid result: "


@pytest.mark.rule("pipeline: a Job without a valid result leaves the files unchecked, with a Warning event")
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param("checksums\n", f"{INVALID}Expecting value", id="no JSON"),
        pytest.param(json.dumps(FILES | {"/rootfs.squashfs": "x"}), f"{INVALID}the digest of /root", id="no digest"),
        pytest.param(json.dumps({"/a": "ab" * 32}), f"{INVALID}/bundle/metadata.yaml is missing", id="other files"),
    ],
)
async def test_invalid_result_is_reported(cluster: Harvester, message: str, reason: str) -> None:
    ctx = await started(cluster)
    await MetadataPopulate().run(ctx)
    await pod(cluster, "a", message=message)
    await end(cluster, "Complete")
    assert await MetadataPopulate().run(ctx) == Completed()
    _assert_unchecked(cluster, ctx, reason)


@pytest.mark.rule("pipeline: a Job without a valid result leaves the files unchecked, with a Warning event")
async def test_failed_job_is_reported_at_once(cluster: Harvester) -> None:
    ctx = await started(cluster)
    await MetadataPopulate().run(ctx)
    await pod(cluster, "a", message="node checksums: compute-checksums: the ISO cannot be read", code=1)
    await end(cluster, "Failed")
    assert await MetadataPopulate().run(ctx) == Completed()
    _assert_unchecked(cluster, ctx, f"Job harvester-system/{JOB} failed: node checksums: ")


@pytest.mark.rule("pipeline: after 10 minutes without checksums MetadataPopulate goes on")
@pytest.mark.parametrize("condition", ["", "Complete"])
async def test_job_without_a_result_is_given_up(cluster: Harvester, condition: str) -> None:
    """It does not start, or its Pod is deleted before the manager reads it."""
    ctx = await started(cluster)
    await MetadataPopulate().run(ctx)
    if condition:
        await end(cluster, condition)
    later(ctx, seconds=590)
    waiting = await MetadataPopulate().run(ctx)
    assert isinstance(waiting, Waiting)
    assert waiting.after is not None
    assert 0 < waiting.after <= 15
    later(ctx, seconds=20)
    assert await MetadataPopulate().run(ctx) == Completed()
    _assert_unchecked(cluster, ctx, f"Job harvester-system/{JOB} has no result after 10 minutes")


@pytest.mark.rule("pipeline: after 10 minutes without checksums MetadataPopulate goes on")
async def test_job_that_cannot_be_created_is_given_up(cluster: Harvester) -> None:
    ctx = await started(cluster)
    await cluster.put(JOBS, foreign())
    with pytest.raises(ForeignObject):
        await MetadataPopulate().run(ctx)
    later(ctx, minutes=11)
    assert await MetadataPopulate().run(ctx) == Completed()
    _assert_unchecked(cluster, ctx, f"Job harvester-system/{JOB} cannot be created: Job harvester-system/{JOB} already")


@pytest.mark.rule("pipeline: after 10 minutes without checksums MetadataPopulate goes on")
@pytest.mark.parametrize(
    "error", [Transient("connection lost"), Throttled("too many", retry_after=1), PreconditionFailed("changed")]
)
async def test_passing_error_is_retried_however_old_the_phase_is(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: KubeError
) -> None:
    ctx = await started(cluster)
    later(ctx, minutes=11)
    with monkeypatch.context() as patched:
        patched.setattr(ctx.client, "create", AsyncMock(side_effect=error))
        with pytest.raises(type(error)):
            await MetadataPopulate().run(ctx)
    assert "checked" not in (ctx.status["checksums"] or {})
    assert isinstance(await MetadataPopulate().run(ctx), Waiting)


def foreign() -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
    return {"metadata": {"name": JOB, "namespace": "harvester-system"}, "spec": {"template": template}}


async def test_latest_result_of_this_job_counts(cluster: Harvester) -> None:
    ctx = await started(cluster)
    await MetadataPopulate().run(ctx)
    other = json.dumps(FILES | {"/rootfs.squashfs": "ef" * 32})
    await pod(cluster, "a", message=json.dumps(FILES), at=2)
    await pod(cluster, "b", message=other, at=1)
    await pod(cluster, "c", message=other, at=3, uid="of another Job")
    await pod(cluster, "d", message=other, at=4, code=1)
    await end(cluster, "Complete")
    assert await MetadataPopulate().run(ctx) == Completed()
    assert ctx.status["checksums"]["files"] == FILES


@pytest.mark.rule("pipeline: a release file that was changed on its way is Degraded, with both digests")
async def test_changed_release_file_is_refused_until_it_is_right(cluster: Harvester) -> None:
    ctx = await started(cluster)
    ctx.status["checksums"] = {"isoChecked": True, "checked": True, "files": FILES}
    changed = CONTENT.replace(b"v1.33.5", b"v1.20.0")
    cluster.files.answers[PATH] = changed
    with pytest.raises(BadRepository) as refused:
        await MetadataPopulate().run(ctx)
    digests = sha256(changed).hexdigest(), FILES["/harvester-release.yaml"]
    assert str(refused.value).startswith(
        "/harvester-release.yaml has the SHA-256 {}, but the one on the ISO has {}. ".format(*digests)
    )
    assert ctx.status["releaseMetadata"] is None
    cluster.files.answers[PATH] = CONTENT
    assert await MetadataPopulate().run(ctx) == Completed()


def _assert_unchecked(cluster: Harvester, ctx: ReconcileContext, reason: str) -> None:
    found = ctx.status["checksums"]
    assert found.keys() == {"isoChecked", "checked", "message"}
    assert found["checked"] is False
    assert found["message"].startswith(reason)
    assert ctx.checksums == {}
    assert cluster.recorder.recorded == [("ISOFilesNotChecked", f"The ISO's files are not checked: {found['message']}")]
