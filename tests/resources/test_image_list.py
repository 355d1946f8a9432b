"""Lists of any length reach the nodes, in Secrets that the API server and the SUC accept."""

from __future__ import annotations

import gzip
from base64 import b64decode
from random import Random
from typing import Any

import pytest

from hack.actors import suc_job
from hack.scenario import UpgradeController
from tests.resources.test_builders import NAMES, PLAN
from tests.support.cluster.harvester import Harvester
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.release.image_lists import SIZE_LIMIT, pack
from upgrade_manager.resources.image_list import CHUNK, LIST_KEY, ImageList
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.suc_plan import image_cleanup_plan, image_preload_plan

OWNER = Owner(name="up", uid="0a1b2c3d-4e5f")
STATUS = {"latestHash": "99e7de4ce98589bc847ec4d9352002cf0b8ada5e012c3fa95521e924", "latestVersion": "v1.7.0"}


def plain(count: int) -> list[str]:
    return [f"docker.io/rancher/mirrored-image-{number}:v{number}.0.{number}" for number in range(count)]


def digests(count: int) -> list[str]:
    """Return references that do not compress."""
    random = Random(1)
    return [f"docker.io/rancher/image:v1@sha256:{random.getrandbits(256):064x}" for _ in range(count)]


@pytest.mark.rule("pipeline: the list given to the nodes may exceed 128 KiB")
@pytest.mark.parametrize(
    ("references", "characters", "pieces"),
    [
        pytest.param(plain(1), 1, 1, id="one image"),
        pytest.param(plain(400), 10_000, 1, id="as many as a release has"),
        pytest.param(plain(20_000), 128 * 1024, 1, id="more than an argument may have"),
        pytest.param(digests(20_000), 1024 * 1024, 2, id="more than a Secret may have"),
        pytest.param(digests(80_000), 6 * 1024 * 1024, 7, id="as much as is read"),
    ],
)
def test_list_of_any_length_is_delivered_completely(references: list[str], characters: int, pieces: int) -> None:
    text = "".join(f"{reference}\n" for reference in references)
    assert characters < len(text) < SIZE_LIMIT
    secrets = ImageList(owner=OWNER, packed=pack(references)).secrets()
    assert len(secrets) == pieces
    assert max(len(str(secret)) for secret in secrets) < 1024 * 1024
    assert gzip.decompress(b"".join(b64decode(secret["data"][LIST_KEY]) for secret in secrets)).decode() == text


@pytest.mark.rule("workloads: an object that another owner controls is never adopted")
@pytest.mark.parametrize(
    ("other", "packed"),
    [
        pytest.param(Owner(name="up", uid="ffffffff"), b"x", id="a plan of the same name"),
        pytest.param(Owner(name="up2", uid=OWNER.uid), b"x", id="another plan"),
        pytest.param(OWNER, b"y", id="another content"),
    ],
)
def test_secret_names_depend_on_plan_and_content(other: Owner, packed: bytes) -> None:
    mine = ImageList(owner=OWNER, packed=b"x").names()
    assert mine == ImageList(owner=OWNER, packed=b"x").names()
    assert not set(mine) & set(ImageList(owner=other, packed=packed).names())


async def test_api_server_accepts_the_jobs_of_the_suc(cluster: Harvester) -> None:
    plans = list[dict[str, Any]]()
    for owner in (Owner(name=name, uid="u-1") for name in NAMES.values()):
        images = ImageList(owner=owner, packed=bytes(CHUNK + 1))
        plans.append(image_preload_plan(owner, PLAN, concurrency=3))
        plans.append(image_cleanup_plan(owner, PLAN, secrets=images.names()))
    for plan in plans:
        plan["metadata"]["uid"] = "p-1"
        node = {"metadata": {"name": "rack-7.node-1", "labels": {"kubernetes.io/hostname": "rack-7.node-1"}}}
        job = suc_job.build(plan, STATUS, node, UpgradeController(), parallelism=0)
        await cluster.client.create(JOBS, job)
        volumes = [volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]]
        assert len(volumes) == len(set(volumes))
