"""Which code a stolen token of the manager may run, on the real API server."""

from __future__ import annotations

from functools import partial
from typing import Any

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
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    JOBS,
    SECRETS,
    SERVICES,
    SUC_PLANS,
    VIRTUAL_MACHINE_IMAGES,
    Resource,
)

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
HARVESTER, RANCHER = ({"serviceAccountName": name} for name in ("harvester", "rancher"))
ISO = {"displayName": "x", "sourceType": "download", "url": "http://x/iso"}
NO_IMAGE = "is in none of the repositories"

job = partial(create, JOBS, GuardedCluster.job)
repo = partial(create, DEPLOYMENTS, GuardedCluster.deployment)
suc_plan = partial(create, SUC_PLANS, GuardedCluster.suc_plan)


def pod(**fields: Any) -> Change:
    return lambda obj: obj["spec"]["template"]["spec"].update(fields)


def container(**fields: Any) -> Change:
    return lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(fields)


def upgrade(**fields: Any) -> Change:
    return lambda obj: obj["spec"]["upgrade"].update(fields)


def two_containers(second: Object) -> Request:
    """Create a Job with two other containers."""
    return job(pod(containers=[CONTAINER, second | {"name": "x"}]))


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


#: The API server evaluates policies in any order; `test_prefixes_hold_without_the_status` has one of them alone.
image = partial(row, ("pods", "active-plan"), "denied request: image ")
plan_image = partial(row, ("suc-plans", "active-plan"), "denied request: image ")
pods = partial(row, "pods")
pods_stay = partial(row, "pods", "does not change the Pods")
plan_fields = partial(row, "suc-plans")
CREATED, PLANNED, SERVED = job(), suc_plan(more), repo(more)
SELECTOR, HOST_NETWORK = {"nodeSelector": {"a": "b"}}, {"hostNetwork": True}

CODE = [
    image("run an image of another repository", job(container(image=EVIL["image"])), CREATED),
    image("run it in a Job of 1000 labels", job(container(image=NEAR), many), job(many)),
    image("run an image of a similar repository", job(container(image=NEAR)), CREATED),
    image("add an init container", job(pod(initContainers=[EVIL])), job(pod(initContainers=[CONTAINER]))),
    image("add a container", two_containers(EVIL), two_containers(CONTAINER)),
    image("run another image as repository", repo(container(image=EVIL["image"])), SERVED),
    pods("no volumes from images", "mount an image", job(pod(volumes=[IMAGE_VOLUME])), CREATED),
    pods("account default is not", "run as another account", job(pod(serviceAccountName="default")), CREATED),
    pods("account rancher is not", "run as another account by the old field", job(pod(**OLD_FIELD)), CREATED),
    pods("account harvester is not", "run the repository as Harvester", repo(pod(**HARVESTER)), SERVED),
    # As long as a Job is suspended, Kubernetes permits it.
    pods_stay(
        "change the Pods of a suspended Job",
        patch(JOBS, "suspended", **hs, spec={"template": {"spec": SELECTOR}}),
        patch(JOBS, "suspended", **hs, spec={"suspend": False}),
    ),
    pods_stay(
        "change the Pods of a Deployment",
        patch(DEPLOYMENTS, REPO, **hs, spec={"template": {"spec": HOST_NETWORK}}),
        patch(DEPLOYMENTS, REPO, **hs, spec={"replicas": 2}),
    ),
    plan_image("run another image by a Plan", suc_plan(upgrade(image="evil")), PLANNED),
    plan_image("run a similar image by a Plan", suc_plan(upgrade(image=NEAR)), PLANNED),
    plan_fields("account rancher is not", "run a Plan as another account", suc_plan(spec(**RANCHER)), PLANNED),
    *(
        plan_fields("have no prepare", f"run a Plan with {field}", suc_plan(spec(**{field: value})), PLANNED)
        for field, value in (("prepare", {"image": REPOSITORY}), ("channel", "http://evil"), ("cordon", True))
    ),
    row("objects", "creates only objects", "create a Plan without label", suc_plan(label("")), PLANNED),
    row(RBAC, "cannot patch", "change a Plan", patch(SUC_PLANS, "x", CATTLE_SYSTEM, spec={}), PLANNED),
]

invented = partial(row, "active-plan", "is not the uid of UpgradePlan upgrade")
wrong_image = partial(row, "active-plan", "is not the toolkit image")
ACTIVE = [
    invented("create a Job with an invented uid", job(label("invented")), CREATED),
    invented("create a Plan with an invented uid", suc_plan(label("invented")), PLANNED),
    invented("create a Deployment with an invented uid", repo(label("x"), more), SERVED),
    invented("create a Secret with an invented uid", secret(label("x")), secret()),
    invented("create an image with an invented uid", iso(label("x")), iso()),
    wrong_image("run another tag", job(container(image=OTHER_TAG)), CREATED),
    wrong_image("run another tag as repository", repo(container(image=OTHER_TAG), more), SERVED),
    wrong_image("run another tag before", job(pod(initContainers=[OLD])), CREATED),
    wrong_image("run another version by a Plan", suc_plan(spec(version="v0"), more), PLANNED),
    wrong_image("run a digest by a Plan", suc_plan(upgrade(image=DIGEST), more), PLANNED),
    wrong_image(
        "run another tag by a Plan",
        suc_plan(upgrade(image=OTHER_TAG), more),
        suc_plan(upgrade(image=str(IMAGE)), more),
    ),
]


@pytest.mark.parametrize(("policy", "text", "abuse", "permitted"), [*CODE, *ACTIVE])
async def test_abuse_is_refused_and_work_permitted(
    manager: RawClient, cluster: GuardedCluster, policy: str, text: str, abuse: Request, permitted: Request
) -> None:
    await check(manager, cluster, policy=policy, text=text, abuse=abuse, permitted=permitted)


EVIL_CONTAINER, EVIL_UPGRADE = container(image=EVIL["image"]), upgrade(image=EVIL["image"])
FORGED = [
    pytest.param("pods", job(EVIL_CONTAINER), id="container"),
    pytest.param("pods", job(EVIL_CONTAINER, pod(initContainers=[EVIL])), id="init container"),
    pytest.param("pods", repo(EVIL_CONTAINER, more), id="repository"),
    pytest.param("suc-plans", suc_plan(EVIL_UPGRADE, more), id="Plan"),
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
