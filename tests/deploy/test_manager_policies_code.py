"""Which code a stolen token of the manager may run, on the real API server."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster import guarded_cluster
from tests.support.cluster.guarded_cluster import (
    IMAGE,
    LONG,
    MANY,
    REPO,
    REPOSITORY,
    TOOLKIT,
    GuardedCluster,
    labelled,
    manifest,
)
from tests.support.managers.manager_requests import (
    RBAC,
    Build,
    Change,
    Request,
    check,
    check_permitted,
    check_refused,
    create,
    label,
    more,
    no_active_plan,
    patch,
    row,
    secret,
    spec,
    toolkit_image,
    unlabelled,
)
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, SECRETS, SERVICES, SUC_PLANS, VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from tests.support.server.raw_client import RawClient
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

hs = {"namespace": HARVESTER_SYSTEM}
CONTAINER = {"name": "more", "image": str(IMAGE)}
EVIL = {"name": "more", "image": "docker.io/evil/image:v1"}
#: The first begins like the permitted repository, and is another.
NEAR, OTHER_TAG = f"{REPOSITORY}-evil:v1", f"{REPOSITORY}:v0"
OLD = {"name": "more", "image": OTHER_TAG}
DIGEST = f"{REPOSITORY}@sha256:{'0' * 64}"
IMAGE_VOLUME = {"name": "host-root", "image": {"reference": "evil"}}
OLD_FIELD = {"serviceAccountName": None, "serviceAccount": "rancher"}
HARVESTER = {"serviceAccountName": "harvester"}
ISO = {"displayName": "x", "sourceType": "download", "url": "http://x/iso"}
#: The API server evaluates policies in any order; `test_prefixes_hold_without_the_status` has one of them alone.
EITHER, REFUSED_IMAGE = ("pods", "active-plan"), "denied request: image "
NO_IMAGE = "is in none of the repositories"
PODS_STAY = "does not change the Pods"
WRONG_UID, WRONG_IMAGE = "is not the uid of UpgradePlan upgrade", "is not the toolkit image"

job = partial(create, JOBS, GuardedCluster.job)
repo = partial(create, DEPLOYMENTS, GuardedCluster.deployment)
suc_plan = partial(create, SUC_PLANS, GuardedCluster.suc_plan)


def pod(**fields: Any) -> Change:
    return lambda obj: obj["spec"]["template"]["spec"].update(fields)


def container(**fields: Any) -> Change:
    return lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(fields)


def upgrade(**fields: Any) -> Change:
    return lambda obj: obj["spec"]["upgrade"].update(fields)


def many(obj: Object) -> None:
    """Add more labels and containers than any Job has, and a name as long as it may be."""
    obj["metadata"]["name"] = LONG[:63]
    obj["metadata"]["labels"] |= MANY
    containers = obj["spec"]["template"]["spec"]["containers"]
    containers += [CONTAINER | {"name": f"{'c' * 60}{number:03}"} for number in range(100)]


def iso(*changes: Change) -> Request:
    def build(own: GuardedCluster) -> Object:
        return labelled(manifest(VIRTUAL_MACHINE_IMAGES, "more", HARVESTER_SYSTEM, spec=ISO), own.uid)

    return create(VIRTUAL_MACHINE_IMAGES, build, *changes)


CODE = [
    row("run an image of another repository", EITHER, REFUSED_IMAGE, job(container(image=EVIL["image"])), job()),
    row("run it in a Job of 1000 labels", EITHER, REFUSED_IMAGE, job(container(image=NEAR), many), job(many)),
    row("run an image of a similar repository", EITHER, REFUSED_IMAGE, job(container(image=NEAR)), job()),
    row(
        "add an init container",
        EITHER,
        REFUSED_IMAGE,
        job(pod(initContainers=[EVIL])),
        job(pod(initContainers=[CONTAINER])),
    ),
    row(
        "add a container",
        EITHER,
        REFUSED_IMAGE,
        job(pod(containers=[CONTAINER, EVIL | {"name": "x"}])),
        job(pod(containers=[CONTAINER, CONTAINER | {"name": "x"}])),
    ),
    row("mount an image", "pods", "no volumes from images", job(pod(volumes=[IMAGE_VOLUME])), job()),
    row("run as another account", "pods", "account default is not", job(pod(serviceAccountName="default")), job()),
    row("run as another account by the old field", "pods", "account rancher is not", job(pod(**OLD_FIELD)), job()),
    row("run the repository as Harvester", "pods", "account harvester is not", repo(pod(**HARVESTER)), repo(more)),
    row("run another image as repository", EITHER, REFUSED_IMAGE, repo(container(image=EVIL["image"])), repo(more)),
    row(
        "change the Pods of a suspended Job",
        "pods",
        PODS_STAY,
        # As long as it is suspended, Kubernetes permits it.
        patch(JOBS, "suspended", **hs, spec={"template": {"spec": {"nodeSelector": {"a": "b"}}}}),
        patch(JOBS, "suspended", **hs, spec={"suspend": False}),
    ),
    row(
        "change the Pods of a Deployment",
        "pods",
        PODS_STAY,
        patch(DEPLOYMENTS, REPO, **hs, spec={"template": {"spec": {"hostNetwork": True}}}),
        patch(DEPLOYMENTS, REPO, **hs, spec={"replicas": 2}),
    ),
    row(
        "run another image by a Plan",
        ("suc-plans", "active-plan"),
        REFUSED_IMAGE,
        suc_plan(upgrade(image="evil")),
        suc_plan(more),
    ),
    row(
        "run a similar image by a Plan",
        ("suc-plans", "active-plan"),
        REFUSED_IMAGE,
        suc_plan(upgrade(image=NEAR)),
        suc_plan(more),
    ),
    row(
        "run a Plan as another account",
        "suc-plans",
        "account rancher is not",
        suc_plan(spec(serviceAccountName="rancher")),
        suc_plan(more),
    ),
    *(
        row(
            f"run a Plan with {field}", "suc-plans", "have no prepare", suc_plan(spec(**{field: value})), suc_plan(more)
        )
        for field, value in (("prepare", {"image": REPOSITORY}), ("channel", "http://evil"), ("cordon", True))
    ),
    row("create a Plan without label", "objects", "creates only objects", suc_plan(label("")), suc_plan(more)),
    row("change a Plan", RBAC, "cannot patch", patch(SUC_PLANS, "x", CATTLE_SYSTEM, spec={}), suc_plan(more)),
]

ACTIVE = [
    row("create a Job with an invented uid", "active-plan", WRONG_UID, job(label("invented")), job()),
    row("create a Plan with an invented uid", "active-plan", WRONG_UID, suc_plan(label("invented")), suc_plan(more)),
    row("create a Deployment with an invented uid", "active-plan", WRONG_UID, repo(label("x"), more), repo(more)),
    row("create a Secret with an invented uid", "active-plan", WRONG_UID, secret(label("x")), secret()),
    row("create an image with an invented uid", "active-plan", WRONG_UID, iso(label("x")), iso()),
    row("run another tag", "active-plan", WRONG_IMAGE, job(container(image=OTHER_TAG)), job()),
    row(
        "run another tag as repository", "active-plan", WRONG_IMAGE, repo(container(image=OTHER_TAG), more), repo(more)
    ),
    row("run another tag before", "active-plan", WRONG_IMAGE, job(pod(initContainers=[OLD])), job()),
    row(
        "run another version by a Plan", "active-plan", WRONG_IMAGE, suc_plan(spec(version="v0"), more), suc_plan(more)
    ),
    row("run a digest by a Plan", "active-plan", WRONG_IMAGE, suc_plan(upgrade(image=DIGEST), more), suc_plan(more)),
    row(
        "run another tag by a Plan",
        "active-plan",
        WRONG_IMAGE,
        suc_plan(upgrade(image=OTHER_TAG), more),
        suc_plan(upgrade(image=str(IMAGE)), more),
    ),
]


@pytest.mark.parametrize(("policy", "text", "abuse", "permitted"), [*CODE, *ACTIVE])
async def test_abuse_is_refused_and_work_permitted(
    manager: RawClient, cluster: GuardedCluster, policy: str, text: str, abuse: Request, permitted: Request
) -> None:
    await check(manager, cluster, policy=policy, text=text, abuse=abuse, permitted=permitted)


FORGED = [
    pytest.param("pods", job(container(image=EVIL["image"])), id="container"),
    pytest.param("pods", job(container(image=EVIL["image"]), pod(initContainers=[EVIL])), id="init container"),
    pytest.param("pods", repo(container(image=EVIL["image"]), more), id="repository"),
    pytest.param("suc-plans", suc_plan(upgrade(image=EVIL["image"]), more), id="Plan"),
]


@pytest.mark.parametrize(("policy", "abuse"), FORGED)
async def test_prefixes_hold_without_the_status(
    admin: RawClient, manager: RawClient, cluster: GuardedCluster, policy: str, abuse: Request
) -> None:
    repository, _, tag = EVIL["image"].rpartition(":")
    async with toolkit_image(admin, manager, cluster, TOOLKIT | {"repository": repository, "tag": tag}):
        await check_refused(manager, abuse(cluster), policy=policy, text=NO_IMAGE)


OTHERS = [
    pytest.param(JOBS, GuardedCluster.job, id="Job"),
    pytest.param(DEPLOYMENTS, GuardedCluster.deployment, id="Deployment"),
    pytest.param(SUC_PLANS, GuardedCluster.suc_plan, id="Plan"),
    pytest.param(SERVICES, GuardedCluster.service, id="Service"),
    pytest.param(SECRETS, guarded_cluster.image_list, id="Secret"),
]


@pytest.mark.rule("permissions: without an active plan the manager creates nothing, and others are not limited")
@pytest.mark.parametrize(("resource", "build"), OTHERS)
async def test_without_active_plan_only_others_create(
    admin: RawClient, manager: RawClient, cluster: GuardedCluster, resource: Resource, build: Build
) -> None:
    """The API server finds the parameters of a policy before it reads which users the policy is for."""
    own, foreign = create(resource, build, more)(cluster), create(resource, build, more, unlabelled)(cluster)
    async with no_active_plan(admin, manager, cluster):
        await check_refused(manager, own, policy="active-plan", text="no params found")
        await check_permitted(admin, foreign)
