"""The objects that a whole upgrade creates: kinds, namespaces, images and accounts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hack.bench.in_process import MANAGER, record
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import title
from tests.support.managers.healthy_jobs import healthy_jobs
from tests.support.managers.healthy_run import creations, healthy_run
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun
from upgrade_manager import __version__
from upgrade_manager.api.toolkit_image import ToolkitConfig
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import SERVICE_ACCOUNTS

ANNOTATION = "management.harvesterhci.io/upgrade-toolkit-image"
OPTIONS = RunOptions(
    job_service_account="worker",
    plan_service_account="planner",
    toolkit=ToolkitConfig(version=__version__, prefixes=("registry:5000", "rancher")),
)


async def created(**spec: Any) -> list[Object]:
    """Return the objects that an upgrade of three nodes creates with the users' image and accounts."""
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = OPTIONS
        for name, namespace in (("worker", "harvester-system"), ("planner", "cattle-system")):
            account = {"metadata": {"name": name, "namespace": namespace}}
            await simulation.client().create(SERVICE_ACCOUNTS, account)
        recorder = record(simulation)
        async with stage.life():
            await stage.create_plan({**BY_VERSION, **spec}, annotations={ANNOTATION: "registry:5000/mine/toolkit"})
            await stage.succeed()
    return creations(recorder.of(MANAGER))


@pytest.mark.rule(
    "workloads: an upgrade creates a fixed set of objects, each once",
    "workloads: objects are in harvester-system; Plans and their Secrets are in cattle-system",
    "workloads: the image's url and checksum are the Version's",
    "workloads: the image's displayName is PLAN-VERSION",
)
def test_upgrade_creates_exactly_these_objects() -> None:
    made = creations(healthy_run().exchanges)
    jobs = healthy_jobs("upgrade", [f"node-{number}" for number in range(3)])
    assert sorted(re.sub("cleanup-[0-9a-f]{10}-", "cleanup-HASH-", title(obj)) for obj in made) == sorted(
        [
            "ConfigMap harvester-system/upgrade-history",
            "VirtualMachineImage harvester-system/upgrade-iso",
            "Deployment harvester-system/upgrade-repo",
            "Service harvester-system/upgrade-repo",
            "Plan cattle-system/upgrade-image-preload",
            *(f"Job harvester-system/{job}" for job in jobs),
            "Plan cattle-system/upgrade-skip-on",
            "Plan cattle-system/upgrade-skip-off",
            "Secret cattle-system/upgrade-image-cleanup-HASH-00",
            "Plan cattle-system/upgrade-image-cleanup",
        ]
    )
    version = healthy_run().version
    (image,) = [objects.spec(obj) for obj in made if obj["kind"] == "VirtualMachineImage"]
    assert (image["url"], image["checksum"]) == (version["spec"]["isoURL"], version["spec"]["isoChecksum"])
    assert image["checksum"]
    assert image["displayName"] == "upgrade-v1.8.0"
    assert_toolkit(
        made, "rancher/harvester-upgrade-toolkit", "v1.8.0", job="harvester", plan="system-upgrade-controller"
    )


def assert_toolkit(made: list[Object], repository: str, tag: str, *, job: str, plan: str) -> None:
    """Check the image and the service account of every workload."""
    for obj in made:
        kind, described = obj["kind"], objects.spec(obj)
        if kind == "Plan":
            assert (described["upgrade"]["image"], described["version"]) == (repository, tag)
            assert described["serviceAccountName"] == plan
        elif "template" in described:
            pod = described["template"]["spec"]
            assert [container["image"] for container in pod["containers"]] == [f"{repository}:{tag}"]
            assert pod.get("serviceAccountName") == (job if kind == "Job" else None)
    assert {obj["kind"] for obj in made} >= {"Deployment", "Job", "Plan"}


@pytest.mark.full
@pytest.mark.rule(
    "workloads: the toolkit's repository is the annotation's, else --toolkit-image, else the published one",
    "workloads: the toolkit's tag is spec.upgrade, else --toolkit-tag, else by kind",
    "workloads: the toolkit image is recorded before anything is created, and nothing else is used",
    "workloads: Jobs use the service account harvester or UPGRADE_JOB_SERVICE_ACCOUNT",
    "workloads: Plans use the service account system-upgrade-controller or UPGRADE_PLAN_SERVICE_ACCOUNT",
)
async def test_workloads_have_the_users_image_tag_and_accounts() -> None:
    made = await created(upgrade="fix")
    assert_toolkit(made, "registry:5000/mine/toolkit", "fix", job="worker", plan="planner")
