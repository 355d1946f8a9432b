"""Properties of all created objects, for plan and node names of every kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.cluster.harvester import Harvester
from upgrade_manager.api.keys import LABEL_COMPONENT, LABEL_NODE, LABEL_PLAN, LABEL_PLAN_UID, Component, JobType
from upgrade_manager.api.names import is_object_name, label_value, repo_service_name, restore_vm_config_map
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, SECRETS, SERVICES, SUC_PLANS, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.resources.checksums import checksums_job
from upgrade_manager.resources.image_list import CHUNK, ImageList
from upgrade_manager.resources.iso_image import iso_image
from upgrade_manager.resources.jobs import JobSettings, cluster_upgrade_job, node_job, restore_job
from upgrade_manager.resources.owner import Owner, plan_uid
from upgrade_manager.resources.repository import repository_deployment, repository_service
from upgrade_manager.resources.suc_plan import (
    PlanSettings,
    image_cleanup_plan,
    image_preload_plan,
    script_plan,
    survey_plan,
)
from upgrade_manager.resources.toolkit import ToolkitImage

IMAGE = ToolkitImage(repository="rancher/harvester-upgrade-toolkit", tag="v1.7.0")
JOB = JobSettings(image=IMAGE, service_account="harvester")
PLAN = PlanSettings(image=IMAGE, service_account="system-upgrade-controller")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
NODE_TYPES = [job_type for job_type in JobType if job_type is not JobType.RESTORE_VM]
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def dotted(length: int) -> str:
    """Return a name of that length with as many dots as possible."""
    return ("a." * length)[:length].rstrip(".").ljust(length, "z")


NAMES = {
    "one character": "u",
    "a digit": "1",
    "a digit first": "1-8-0",
    "a version": "v1.8.0",
    "63 characters": "p" * 63,
    "63 characters with dots": dotted(63),
    "200 characters": "p" * 100 + "-" * 1 + "q" * 99,
    "200 characters with dots": dotted(200),
    "253 characters": "p" * 56 + "." + "q" * 196,
    "253 characters with dots": dotted(253),
    "a hyphen where it is cut": "p" * 56 + "-" + "q" * 100,
}


def everything(owner: Owner, node: str) -> list[tuple[Any, dict[str, Any]]]:
    """Return every object of an upgrade, with its kind."""
    images = ImageList(owner=owner, packed=bytes(CHUNK + 1))
    return [
        (VIRTUAL_MACHINE_IMAGES, iso_image(owner, version="v1.7.0", url="https://x/a.iso", checksum="ab" * 64)),
        (DEPLOYMENTS, repository_deployment(owner, image=IMAGE, claim="up-iso", replicas=2)),
        (SERVICES, repository_service(owner)),
        (JOBS, checksums_job(owner, JOB, claim="up-iso")),
        (JOBS, cluster_upgrade_job(owner, JOB)),
        *[(JOBS, node_job(owner, JOB, node=node, job_type=job_type)) for job_type in NODE_TYPES],
        (JOBS, restore_job(owner, JOB, node=node)),
        (SUC_PLANS, image_preload_plan(owner, PLAN, concurrency=3)),
        (SUC_PLANS, survey_plan(owner, PLAN, concurrency=3, reports=True)),
        *[
            (SUC_PLANS, script_plan(owner, PLAN, component, script="true", concurrency=3))
            for component in (Component.AGENT_HOLD, Component.AGENT_RELEASE, Component.SKIP_ON, Component.SKIP_OFF)
        ],
        (SUC_PLANS, image_cleanup_plan(owner, PLAN, secrets=images.names())),
        *[(SECRETS, secret) for secret in images.secrets()],
    ]


@pytest.mark.rule("api: generated label values are valid", "api: shortened names stay unique")
async def test_api_server_accepts_every_object(cluster: Harvester) -> None:
    for name in NAMES.values():
        for resource, manifest in everything(Owner(name=name, uid="u-1"), name):
            await cluster.client.create(resource, manifest)


@pytest.mark.rule("api: generated names have at most 63 characters", "api: generated label values are valid")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_and_labels_are_valid(name: str) -> None:
    for resource, manifest in everything(Owner(name=name, uid="u-1"), name):
        assert len(manifest["metadata"]["name"]) <= 63
        template = manifest["spec"].get("template", {}) if "spec" in manifest else {}
        labels = {**manifest["metadata"]["labels"], **template.get("metadata", {}).get("labels", {})}
        assert [value for value in labels.values() if not LABEL_VALUE.fullmatch(value)] == []
        assert resource is not SERVICES or DNS_1035.fullmatch(manifest["metadata"]["name"])


@pytest.mark.rule(
    "api: every created object has the plan's name and uid as labels",
    "api: of created objects, only SUC Plans, Secrets and suspended Jobs have the plan as controlling owner",
    "api: every created object has a component as a label",
    "workloads: every object has labels for the plan, its uid and the component",
    "workloads: objects are in harvester-system; Plans and their Secrets are in cattle-system",
)
def test_every_object_belongs_to_its_plan() -> None:
    owner = Owner(name="up", uid="u-1")
    reference = {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "name": "up",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    suspended = node_job(owner, JOB, node="n2", job_type=JobType.PRE_DRAIN, suspended=True)
    for resource, manifest in [*everything(owner, "n1"), (JOBS, suspended)]:
        place = "cattle-system" if resource in {SUC_PLANS, SECRETS} else "harvester-system"
        assert manifest["metadata"]["namespace"] == place
        is_dependent = resource in {SUC_PLANS, SECRETS} or manifest is suspended
        assert manifest["metadata"].get("ownerReferences", []) == [reference] * is_dependent
        template = manifest.get("spec", {}).get("template", {"metadata": manifest["metadata"]})
        for metadata in (manifest["metadata"], template["metadata"]):
            assert (metadata["labels"][LABEL_PLAN], metadata["labels"][LABEL_PLAN_UID]) == ("up", "u-1")
        assert owner.owns(manifest)
        assert not Owner(name="up", uid="u-2").owns(manifest)
    components = Counter(manifest["metadata"]["labels"][LABEL_COMPONENT] for _, manifest in everything(owner, "n1"))
    several = {"repo": 2, "node-upgrade": 4, "image-cleanup": 3}
    assert components == dict.fromkeys(Component, 1) | several


@pytest.mark.rule("api: shortened names stay unique")
def test_names_of_plans_with_a_long_common_prefix_differ() -> None:
    one, other = (Owner(name="p" * 200 + end, uid=end) for end in "ab")
    for (_, mine), (_, theirs) in zip(everything(one, "n1"), everything(other, "n1"), strict=True):
        assert mine["metadata"]["name"] != theirs["metadata"]["name"]
        assert mine["metadata"]["labels"][LABEL_PLAN] != theirs["metadata"]["labels"][LABEL_PLAN]


@pytest.mark.rule("api: objects are found by shortened labels")
async def test_selectors_match_only_the_objects_of_one_plan_or_node(cluster: Harvester) -> None:
    owners = [Owner(name=name, uid=f"u-{index}") for index, name in enumerate(NAMES.values())]
    for owner in owners:
        for node in NAMES.values():
            await cluster.client.create(JOBS, node_job(owner, JOB, node=node, job_type=JobType.PRE_DRAIN))
    for owner in owners:
        listed = (await cluster.client.list(JOBS, label_selector=owner.selector(Component.NODE_UPGRADE))).items
        assert {plan_uid(job) for job in listed} == {owner.uid}
        assert sorted(map(pod_node, listed)) == sorted(NAMES.values())
    for node in NAMES.values():
        selector = f"{LABEL_NODE}={label_value(node)}"
        listed = (await cluster.client.list(JOBS, label_selector=selector)).items
        assert {pod_node(job) for job in listed} == {node}
        assert len(listed) == len(owners)


def pod_node(job: dict[str, Any]) -> str:
    return str(job["spec"]["template"]["spec"]["nodeName"])


@pytest.mark.parametrize("make", [restore_vm_config_map, repo_service_name], ids=["restore-vm", "Service"])
def test_names_derived_from_the_plan_are_valid_and_unique(make: Callable[[str], str]) -> None:
    made = [make(name) for name in NAMES.values()]
    assert len(set(made)) == len(made)
    assert [name for name in made if not is_object_name(name)] == []


@pytest.mark.rule("api: shortened names stay unique")
def test_jobs_of_nodes_with_a_long_common_prefix_differ() -> None:
    owner = Owner(name="p" * 253, uid="u")
    nodes = ["n" * 60 + end for end in ("-0", "-1", ".0", ".1", "-0.x")]
    made = [node_job(owner, JOB, node=node, job_type=job_type) for node in nodes for job_type in JobType]
    assert len({job["metadata"]["name"] for job in made}) == len(made)
    assert len({job["metadata"]["labels"][LABEL_NODE] for job in made}) == len(nodes)
