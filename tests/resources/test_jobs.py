"""The Jobs, field by field: their command lines and environment are what the published toolkit image understands."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.api.keys import JobType
from upgrade_manager.resources.jobs import JobSettings, cluster_upgrade_job, node_job, restore_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.toolkit import ToolkitImage, tolerations

OWNER = Owner(name="up", uid="u-1")
SETTINGS = JobSettings(image=ToolkitImage(repository="example/toolkit", tag="v1.7.0"), service_account="worker")
NODE_TYPES = [JobType.PRE_DRAIN, JobType.POST_DRAIN, JobType.SINGLE_NODE_UPGRADE]
LONG_NODE = "n" * 100 + ".example"
PLAN = {"upgrade-plan": "up", "upgrade-plan-uid": "u-1"}
PLAN_NAME = {"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "up"}
PLAN_UID = {"name": "HARVESTER_UPGRADEPLAN_UID", "value": "u-1"}
NODE_NAME = {"name": "HARVESTER_UPGRADE_NODE_NAME", "value": "n1"}
POD_NAME = {"name": "HARVESTER_UPGRADE_POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def expected(name: str, labels: dict[str, str], pod: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    """Return a whole Job; the arguments are what differs."""
    labels = {f"management.harvesterhci.io/{key}": value for key, value in (PLAN | labels).items()}
    apply = {
        "name": "apply",
        "image": "example/toolkit:v1.7.0",
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    spec = {"restartPolicy": "Never", "serviceAccountName": "worker", "enableServiceLinks": False}
    spec |= {"tolerations": tolerations()}
    template = {"metadata": {"labels": labels}, "spec": spec | pod | {"containers": [apply | container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "harvester-system", "labels": labels},
        "spec": {"backoffLimit": 2, "ttlSecondsAfterFinished": 604800, "template": template},
    }


@pytest.mark.rule(
    "pipeline: ClusterUpgrade runs upgrade_manifests.sh in one Job",
    "workloads: the cluster Job is named PLAN-cluster-upgrade",
    "workloads: the cluster Job's Pod never restarts",
    "workloads: the cluster Job's TTL is 604800 seconds",
    "workloads: the container apply runs upgrade_manifests.sh with HARVESTER_UPGRADEPLAN_NAME",
    "workloads: all Jobs have the tolerations",
    "workloads: a Job has its plan's uid in HARVESTER_UPGRADEPLAN_UID",
    "workloads: no variable of another Service is set in Pods of Jobs and of the repository",
    "workloads: every Job has backoffLimit 2",
)
def test_cluster_upgrade_job() -> None:
    container = {"command": ["upgrade_manifests.sh"], "env": [PLAN_NAME, PLAN_UID]}
    job = expected("up-cluster-upgrade", {"upgrade-component": "cluster-upgrade"}, {}, container)
    assert cluster_upgrade_job(OWNER, SETTINGS) == job


@pytest.mark.rule(
    "api: names are PLAN-COMPONENT, and PLAN-COMPONENT-STEP-NODE for node Jobs",
    "api: node Jobs have node and one of four steps as labels",
    "api: Pods of node Jobs have the Job's labels",
    "workloads: a node Job is named PLAN-node-upgrade-TYPE-NODE",
    "workloads: a node Job's Pod is privileged, in the host's PID namespace, with its / at /host",
    "workloads: a node Job's TTL is 604800 seconds, and its Pod never restarts",
    "workloads: a node Job has HARVESTER_UPGRADEPLAN_NAME and HARVESTER_UPGRADE_NODE_NAME",
    "workloads: post-drain and single-node-upgrade Jobs have HARVESTER_UPGRADE_POD_NAME",
    "workloads: the container apply runs upgrade_node.sh with the job type as argument",
    "workloads: all Jobs have the tolerations",
    "workloads: every Job has backoffLimit 2",
    "workloads: a node Job is suspended only while the node is paused",
)
@pytest.mark.parametrize("job_type", NODE_TYPES)
def test_node_job(job_type: JobType) -> None:
    root = {"name": "host-root", "hostPath": {"path": "/", "type": "Directory"}}
    job = expected(
        f"up-node-upgrade-{job_type}-n1",
        {"upgrade-component": "node-upgrade", "node": "n1", "job-type": job_type.value},
        {"nodeName": "n1", "hostPID": True, "volumes": [root]},
        {
            "command": ["upgrade_node.sh"],
            "args": [job_type.value],
            "env": [PLAN_NAME, PLAN_UID, NODE_NAME, *([] if job_type is JobType.PRE_DRAIN else [POD_NAME])],
            "securityContext": {"privileged": True},
            "volumeMounts": [{"name": "host-root", "mountPath": "/host"}],
        },
    )
    assert node_job(OWNER, SETTINGS, node="n1", job_type=job_type) == job
    job["spec"]["suspend"] = True
    job["metadata"]["ownerReferences"] = [OWNER.reference()]
    assert node_job(OWNER, SETTINGS, node="n1", job_type=job_type, suspended=True) == job


@pytest.mark.parametrize("job_type", NODE_TYPES)
def test_job_that_reboots_records_the_boot_before(job_type: JobType) -> None:
    made = [node_job(OWNER, SETTINGS, node="n1", job_type=job_type, boot_id=boot)["metadata"] for boot in ("a", "")]
    recorded = {"management.harvesterhci.io/boot-id": "a"} if job_type is not JobType.PRE_DRAIN else None
    assert [one.get("annotations") for one in made] == [recorded, None]


@pytest.mark.rule(
    "api: node Jobs have node and one of four steps as labels",
    "api: Pods of node Jobs have the Job's labels",
    "workloads: the restore Job is named PLAN-node-upgrade-restore-vm-NODE",
    "workloads: the Job runs upgrade-toolkit restore-vm --node NODE --upgrade PLAN on the node",
    "workloads: the restore Job is unprivileged and has no access to the host",
    "workloads: all Jobs have the tolerations",
    "workloads: every Job has backoffLimit 2",
)
def test_restore_job() -> None:
    job = restore_job(OWNER, SETTINGS, node="n1")
    # The toolkit waits for up to half an hour.
    assert 1800 < job["spec"].pop("activeDeadlineSeconds") < 3600
    assert job == expected(
        "up-node-upgrade-restore-vm-n1",
        {"upgrade-component": "node-upgrade", "node": "n1", "job-type": "restore-vm"},
        {"nodeName": "n1"},
        {"command": ["upgrade-toolkit"], "args": ["restore-vm", "--node", "n1", "--upgrade", "up"], "env": [PLAN_UID]},
    )


def test_restore_job_of_a_node_that_left_runs_anywhere() -> None:
    left, stays = (restore_job(OWNER, SETTINGS, node="n1", has_left=one)["spec"] for one in (True, False))
    pod = stays["template"]["spec"]
    assert pod.pop("nodeName") == "n1"
    assert left == stays


def test_long_node_name_is_shortened_except_in_the_pod() -> None:
    job = node_job(OWNER, SETTINGS, node=LONG_NODE, job_type=JobType.PRE_DRAIN)
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeName"] == LONG_NODE
    assert {**NODE_NAME, "value": LONG_NODE} in pod["containers"][0]["env"]
    assert len(job["metadata"]["labels"]["management.harvesterhci.io/node"]) == 63


@pytest.mark.rule("workloads: the Job runs upgrade-toolkit restore-vm --node NODE --upgrade PLAN on the node")
def test_restore_names_are_shortened_except_in_the_command() -> None:
    job = restore_job(Owner(name="p" * 253, uid="u"), SETTINGS, node=LONG_NODE)
    assert len(job["metadata"]["name"]) <= 63
    assert len(job["metadata"]["labels"]["management.harvesterhci.io/node"]) <= 63
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["restore-vm", "--node", LONG_NODE, "--upgrade", "p" * 253]
