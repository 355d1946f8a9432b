from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.kube.errors import Terminal, Transient
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.outcome import Completed, Waiting
from upgrade_manager.pipeline.phases.metadata_populate import MetadataPopulate

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester

PATH = "harvester-iso/harvester-release.yaml"
RELEASE = b"harvester: v1.7.0\nos: Harvester v1.7.0\nkubernetes: v1.33.5+rke2r1\nrancher: v2.12.2\ninstaller: 12e45\n"


@pytest.mark.rule(
    "api: releaseMetadata has the release's members, of seven known ones",
    "pipeline: MetadataPopulate gets harvester-iso/harvester-release.yaml from the plan's repository",
    "pipeline: MetadataPopulate completes when the release file is valid",
)
@pytest.mark.parametrize(
    ("plan", "host"),
    [
        pytest.param("up", "up-repo.harvester-system", id="the plan's Service"),
        pytest.param("v1.8.0", "v1-8-0-repo-", id="whose name has no dots"),
    ],
)
async def test_release_is_read_from_the_repository(cluster: Harvester, plan: str, host: str) -> None:
    cluster.files.answers[PATH] = RELEASE
    ctx = cluster.context(await cluster.plan(plan))
    assert await MetadataPopulate().run(ctx) == Completed()
    assert ctx.status["releaseMetadata"] == {
        "harvester": "v1.7.0",
        "os": "Harvester v1.7.0",
        "kubernetes": "v1.33.5+rke2r1",
        "rancher": "v2.12.2",
    }
    assert cluster.files.requests[0].startswith(f"http://{host}")
    assert cluster.files.requests[0].endswith(".harvester-system/harvester-iso/harvester-release.yaml")


@pytest.mark.rule(
    "pipeline: an unreachable repository is Degraded with the cause",
    "pipeline: an HTTP error is Degraded with the cause",
    "pipeline: invalid YAML is Degraded with the cause",
    "pipeline: incomplete YAML is Degraded with the cause",
)
@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        pytest.param(Terminal("longer than 1 byte"), "longer than 1 byte", id="too long"),
        pytest.param(404, "does not exist", id="not there"),
        pytest.param(204, "returned HTTP 204", id="something else"),
        pytest.param(b"", "is empty", id="an empty file"),
        pytest.param(b"harvester: [v1.8.0", "is not YAML", id="broken YAML"),
        pytest.param(b"harvester: v1.7.0\n", "kubernetes is missing", id="half a file"),
        pytest.param(b"harvester: [v1.7.0]\n", "harvester is a list", id="a list where a version should be"),
    ],
)
async def test_invalid_release_is_reported_and_retried(
    cluster: Harvester, answer: bytes | int | Exception, cause: str
) -> None:
    cluster.files.answers[PATH] = answer
    ctx = cluster.context(await cluster.plan())
    with pytest.raises(RetryError, match=cause):
        await MetadataPopulate().run(ctx)
    assert ctx.status["releaseMetadata"] is None
    cluster.files.answers[PATH] = RELEASE
    assert await MetadataPopulate().run(ctx) == Completed()


@pytest.mark.rule(
    "pipeline: an unreachable repository is Degraded with the cause",
    "pipeline: an HTTP error is Degraded with the cause",
)
@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        pytest.param(Transient("connection refused"), "unreachable: connection refused", id="no connection"),
        pytest.param(503, "returned HTTP 503", id="an error"),
    ],
)
async def test_repository_without_a_response_is_a_wait_with_an_error(
    cluster: Harvester, answer: int | Exception, cause: str
) -> None:
    cluster.files.answers[PATH] = answer
    ctx = cluster.context(await cluster.plan())
    result = await MetadataPopulate().run(ctx)
    assert isinstance(result, Waiting)
    (wait,) = result.waits
    assert (wait.kind, wait.name) == (WaitKind.SERVICE, "up-repo")
    assert cause in wait.detail
    assert str(result.error) == (
        f"{wait.detail}. Show the events of its Pods: kubectl describe pods -n harvester-system "
        "-l management.harvesterhci.io/upgrade-plan=up,management.harvesterhci.io/upgrade-component=repo"
    )
    assert ctx.status["releaseMetadata"] is None
    cluster.files.answers[PATH] = RELEASE
    assert await MetadataPopulate().run(ctx) == Completed()
