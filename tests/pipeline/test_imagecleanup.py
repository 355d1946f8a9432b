from __future__ import annotations

import gzip
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest

from tests.support.harvester import RELEASE
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.kinds import DEPLOYMENTS, ENDPOINT_SLICES, SECRETS, SUC_PLANS
from upgrade_manager.pipeline.errors import BadRepository
from upgrade_manager.pipeline.imagecleanup import ImageCleanup
from upgrade_manager.pipeline.phase import Completed, Waiting

if TYPE_CHECKING:
    from tests.support.harvester import Harvester
    from upgrade_manager.pipeline.scope import Scope

ARCHIVE = "harvester-iso/bundle/harvester/images-lists-archive"
OLD, NEW = f"{ARCHIVE}/v1.6.1/image_list_all.txt", f"{ARCHIVE}/current/image_list_all.txt"


async def serving(cluster: Harvester, *, is_ready: bool) -> None:
    labels = {"kubernetes.io/service-name": "up-repo"}
    endpoint = {"addresses": ["10.0.0.1"], "conditions": {"ready": is_ready}}
    metadata = {"name": "up-repo-x", "namespace": "harvester-system", "labels": labels}
    await cluster.put(ENDPOINT_SLICES, {"metadata": metadata, "addressType": "IPv4", "endpoints": [endpoint]})


async def prepared(cluster: Harvester, old: bytes | int | Exception, new: bytes | int | Exception) -> Scope:
    await cluster.nodes("n1")
    await serving(cluster, is_ready=True)
    cluster.files.answers = {OLD: old, NEW: new}
    return cluster.scope(await cluster.plan(status={"releaseMetadata": RELEASE, "previousVersion": "v1.6.1"}))


async def test_what_only_the_old_release_needed_is_handed_to_a_plan_once(cluster: Harvester) -> None:
    scope = await prepared(cluster, b"a/b:1\na/c:1\nrancher/harvester-upgrade:1\n", b"a/b:2\na/c:1\n")
    for _ in range(2):
        assert isinstance(await ImageCleanup().run(scope), Waiting)
    assert await cluster.names(SUC_PLANS) == ["up-image-cleanup"]
    (secret,) = (await cluster.client.list(SECRETS, namespace="cattle-system")).items
    (packed,) = secret["data"].values()
    assert gzip.decompress(b64decode(packed)) == b"a/b:1\n"


async def test_a_crash_between_secret_and_plan_changes_nothing(cluster: Harvester) -> None:
    scope = await prepared(cluster, b"a/b:1\n", b"a/b:2\n")
    await ImageCleanup().run(scope)
    await cluster.client.delete(SUC_PLANS, "up-image-cleanup", namespace="cattle-system")
    assert isinstance(await ImageCleanup().run(scope), Waiting)
    assert len(await cluster.names(SECRETS, "cattle-system")) == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param(404, b"a/b:2\n", "v1.6.1/image_list_all.txt does not exist", id="no list of the old release"),
        pytest.param(b"a/b:1\n", 404, "current/image_list_all.txt does not exist", id="none of the new one"),
        pytest.param(b"a/b:1\n", b"", "names no image", id="an empty one is no licence to remove everything"),
        pytest.param(b"a/b:1\n", b"<html>\n", "names no image", id="nor is a page"),
        pytest.param(b"a/b:1\n", b"a/b:1\n", "", id="nothing to remove"),
    ],
)
async def test_the_phase_is_skipped_with_a_warning_where_a_list_is_missing(
    cluster: Harvester, old: bytes | int, new: bytes | int, said: str
) -> None:
    assert await ImageCleanup().run(await prepared(cluster, old, new)) == Completed()
    assert await cluster.names(SUC_PLANS) == []
    assert [reason for reason, _ in cluster.heard.said] == ["ImageCleanupSkipped"] * bool(said)
    assert all(said in message for _, message in cluster.heard.said)


async def test_a_repository_that_starts_anew_with_its_node_is_waited_for(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    await serving(cluster, is_ready=False)
    status = {"releaseMetadata": RELEASE, "previousVersion": "v1.6.1", "isoImageID": "up-iso"}
    scope = cluster.scope(await cluster.plan(status=status))
    for _ in range(2):
        assert await ImageCleanup().run(scope) == Waiting(
            message="waiting for Deployment harvester-system/up-repo: 0 of 1 replicas ready"
        )
    assert await cluster.names(DEPLOYMENTS, "harvester-system") == ["up-repo"]
    assert cluster.files.asked == []


@pytest.mark.parametrize("answer", [Transient("refused"), 500], ids=["no answer", "an error"])
async def test_a_repository_that_cannot_be_reached_is_tried_again(cluster: Harvester, answer: int | Exception) -> None:
    scope = await prepared(cluster, b"a/b:1\n", answer)
    with pytest.raises(BadRepository):
        await ImageCleanup().run(scope)
    assert cluster.heard.said == []


async def test_the_lists_are_not_read_again_once_the_plan_is_there(cluster: Harvester) -> None:
    scope = await prepared(cluster, b"a/b:1\n", b"a/b:2\n")
    await ImageCleanup().run(scope)
    cluster.files.answers = {}
    status = {"conditions": [{"type": "Complete", "status": "True"}]}
    await cluster.finish(SUC_PLANS, "up-image-cleanup", "cattle-system", status)
    assert await ImageCleanup().run(scope) == Completed()


@pytest.mark.parametrize("version", ["../../secret", "a/b", "", "..", "v1?x#y"])
async def test_an_odd_previous_version_leads_nowhere_else(cluster: Harvester, version: str) -> None:
    await cluster.nodes("n1")
    await serving(cluster, is_ready=True)
    scope = cluster.scope(await cluster.plan(status={"releaseMetadata": RELEASE, "previousVersion": version}))
    assert await ImageCleanup().run(scope) == Completed()
    middle = cluster.files.asked[0].partition(ARCHIVE)[2].removesuffix("/image_list_all.txt")
    assert "/" not in middle[1:]
    assert not {"?", "#"} & set(middle)
