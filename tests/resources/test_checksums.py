from __future__ import annotations

import json

import pytest

from upgrade_manager.api.keys import Component, JobType
from upgrade_manager.resources.checksums import checksums_job
from upgrade_manager.resources.jobs import JobSettings, cluster_upgrade_job, node_job, restore_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import repository_deployment
from upgrade_manager.resources.suc_plan import PlanSettings, image_cleanup_plan, image_preload_plan, survey_plan
from upgrade_manager.resources.toolkit import ISO_CHECKSUMS, ToolkitImage, tolerations

OWNER = Owner(name="up", uid="u-1")
IMAGE = ToolkitImage(repository="example/toolkit", tag="v1.7.0")
FILES = {"/rootfs.squashfs": "ab" * 32, "/bundle/a.tar.zst": "cd" * 32}
JOB, PLAN = (
    JobSettings(image=IMAGE, service_account="worker", checksums=FILES),
    PlanSettings(image=IMAGE, service_account="planner", checksums=FILES),
)


@pytest.mark.rule(
    "workloads: the checksums Job is named PLAN-checksums, and runs upgrade_node.sh checksums",
    "workloads: the checksums Job is privileged and loop-mounts the ISO's claim as the repository does",
    "workloads: the checksums Job ends after 600 seconds at most",
)
def test_checksums_job() -> None:
    job = checksums_job(OWNER, JobSettings(image=IMAGE, service_account="worker"), claim="up-iso")
    assert job["metadata"]["name"] == "up-checksums"
    assert job["metadata"]["namespace"] == "harvester-system"
    assert job["metadata"]["labels"] == OWNER.labels(Component.CHECKSUMS)
    assert "ownerReferences" not in job["metadata"]
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (2, 600, 604800)
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["serviceAccountName"], pod["tolerations"]) == ("Never", "worker", tolerations())
    (container,) = pod["containers"]
    mounted = "mount -o loop,ro /iso/disk.img /srv/www/htdocs/harvester-iso"
    assert container["command"] == ["/bin/sh", "-c"]
    assert container["args"] == [
        f"set -e; mkdir -p /srv/www/htdocs/harvester-iso; {mounted}; exec upgrade_node.sh checksums"
    ]
    assert container["securityContext"] == {"privileged": True}
    assert container["env"] == [
        {"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "up"},
        {"name": "HARVESTER_UPGRADEPLAN_UID", "value": "u-1"},
    ]
    deployment = repository_deployment(OWNER, image=IMAGE, claim="up-iso", replicas=2)["spec"]
    repository = deployment["template"]
    assert mounted in repository["spec"]["containers"][0]["args"][0]
    assert pod["volumes"] == repository["spec"]["volumes"]
    assert container["volumeMounts"] == repository["spec"]["containers"][0]["volumeMounts"]
    (term,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"] == deployment["selector"]


def variables(built: object) -> list[object]:
    text = json.dumps(built)
    return [one for one in _found(json.loads(text)) if isinstance(one, dict) and one.get("name") == ISO_CHECKSUMS]


def _found(value: object) -> list[object]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(one for part in inner for one in _found(part))]


@pytest.mark.rule("workloads: Jobs that download from the repository have the checksums, where there are any")
@pytest.mark.parametrize(
    ("built", "number"),
    [
        pytest.param(cluster_upgrade_job(OWNER, JOB), 1, id="cluster-upgrade"),
        pytest.param(node_job(OWNER, JOB, node="n", job_type=JobType.PRE_DRAIN), 1, id="node"),
        pytest.param(image_preload_plan(OWNER, PLAN, concurrency=1), 1, id="image-preload"),
        pytest.param(survey_plan(OWNER, PLAN, concurrency=1, reports=True), 1, id="survey"),
        pytest.param(survey_plan(OWNER, PLAN, concurrency=1, reports=False), 0, id="survey of the image alone"),
        pytest.param(restore_job(OWNER, JOB, node="n"), 0, id="restore-vm downloads nothing"),
        pytest.param(image_cleanup_plan(OWNER, PLAN, secrets=["s"]), 0, id="image-cleanup downloads nothing"),
    ],
)
def test_jobs_that_download_have_the_checksums(built: object, number: int) -> None:
    text = '{"/bundle/a.tar.zst":"' + "cd" * 32 + '","/rootfs.squashfs":"' + "ab" * 32 + '"}'
    assert variables(built) == [{"name": "HARVESTER_UPGRADE_CHECKSUMS", "value": text}] * number
