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
JOBS = {
    "cluster-upgrade": cluster_upgrade_job(OWNER, SETTINGS),
    **{job_type.value: node_job(OWNER, SETTINGS, node="n1", job_type=job_type) for job_type in NODE_TYPES},
}


def pod(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    return found


def container(job: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod(job)["containers"]
    return dict(found)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
class TestEveryJob:
    @pytest.mark.rule(
        "workloads: the cluster Job's TTL is 604800 seconds",
        "workloads: a node Job's TTL is 604800 seconds, and its Pod never restarts",
        "workloads: every Job has backoffLimit 2",
    )
    def test_three_attempts_and_a_ttl_of_a_week(self, job: dict[str, Any]) -> None:
        assert job["spec"]["backoffLimit"] == 2
        assert job["spec"]["ttlSecondsAfterFinished"] == 604800

    @pytest.mark.rule(
        "workloads: the cluster Job's Pod never restarts",
        "workloads: a node Job's TTL is 604800 seconds, and its Pod never restarts",
        "workloads: all Jobs have the tolerations",
    )
    def test_restart_policy_and_tolerations(self, job: dict[str, Any]) -> None:
        assert pod(job)["restartPolicy"] == "Never"
        assert pod(job)["tolerations"] == tolerations()

    @pytest.mark.rule(
        "workloads: the container apply runs upgrade_manifests.sh with HARVESTER_UPGRADEPLAN_NAME",
        "workloads: the container apply runs upgrade_node.sh with the job type as argument",
        "workloads: a node Job has HARVESTER_UPGRADEPLAN_NAME and HARVESTER_UPGRADE_NODE_NAME",
    )
    def test_container_runs_the_toolkit_image(self, job: dict[str, Any]) -> None:
        assert container(job)["name"] == "apply"
        assert container(job)["image"] == "example/toolkit:v1.7.0"
        assert container(job)["env"][0] == {"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "up"}

    def test_service_account(self, job: dict[str, Any]) -> None:
        assert pod(job)["serviceAccountName"] == "worker"

    @pytest.mark.rule("api: Pods of node Jobs have the Job's labels")
    def test_pods_have_the_labels_of_the_job(self, job: dict[str, Any]) -> None:
        assert job["spec"]["template"]["metadata"]["labels"] == job["metadata"]["labels"]


@pytest.mark.rule(
    "pipeline: ClusterUpgrade runs upgrade_manifests.sh in one Job",
    "workloads: the cluster Job is named PLAN-cluster-upgrade",
    "workloads: the container apply runs upgrade_manifests.sh with HARVESTER_UPGRADEPLAN_NAME",
)
def test_cluster_upgrade_job() -> None:
    job = JOBS["cluster-upgrade"]
    assert job["metadata"]["name"] == "up-cluster-upgrade"
    assert container(job)["command"] == ["upgrade_manifests.sh"]
    assert "args" not in container(job)
    assert "securityContext" not in container(job)
    assert not {"hostPID", "volumes", "nodeName"} & pod(job).keys()


@pytest.mark.parametrize("job_type", NODE_TYPES)
class TestNodeJob:
    @pytest.mark.rule(
        "api: names are PLAN-COMPONENT, and PLAN-COMPONENT-STEP-NODE for node Jobs",
        "workloads: a node Job is named PLAN-node-upgrade-TYPE-NODE",
    )
    def test_name(self, job_type: JobType) -> None:
        assert JOBS[job_type]["metadata"]["name"] == f"up-node-upgrade-{job_type}-n1"

    @pytest.mark.rule("api: node Jobs have node and one of four steps as labels")
    def test_labels(self, job_type: JobType) -> None:
        labels = JOBS[job_type]["metadata"]["labels"]
        assert labels["management.harvesterhci.io/node"] == "n1"
        assert labels["management.harvesterhci.io/job-type"] == job_type

    @pytest.mark.rule("workloads: a node Job's Pod is privileged, in the host's PID namespace, with its / at /host")
    def test_runs_privileged_on_the_node(self, job_type: JobType) -> None:
        job = JOBS[job_type]
        assert pod(job)["nodeName"] == "n1"
        assert pod(job)["hostPID"] is True
        assert container(job)["securityContext"] == {"privileged": True}
        assert container(job)["volumeMounts"] == [{"name": "host-root", "mountPath": "/host"}]
        (volume,) = pod(job)["volumes"]
        assert (volume["name"], volume["hostPath"]["path"]) == ("host-root", "/")

    @pytest.mark.rule("workloads: the container apply runs upgrade_node.sh with the job type as argument")
    def test_command(self, job_type: JobType) -> None:
        assert container(JOBS[job_type])["command"] == ["upgrade_node.sh"]
        assert container(JOBS[job_type])["args"] == [job_type.value]

    @pytest.mark.rule("workloads: a node Job has HARVESTER_UPGRADEPLAN_NAME and HARVESTER_UPGRADE_NODE_NAME")
    def test_node_name_is_in_the_environment(self, job_type: JobType) -> None:
        assert {"name": "HARVESTER_UPGRADE_NODE_NAME", "value": "n1"} in container(JOBS[job_type])["env"]

    @pytest.mark.rule("workloads: post-drain and single-node-upgrade Jobs have HARVESTER_UPGRADE_POD_NAME")
    def test_jobs_that_reboot_know_their_pod_name(self, job_type: JobType) -> None:
        names = [entry["name"] for entry in container(JOBS[job_type])["env"]]
        assert ("HARVESTER_UPGRADE_POD_NAME" in names) == (job_type is not JobType.PRE_DRAIN)
        if job_type is not JobType.PRE_DRAIN:
            source = container(JOBS[job_type])["env"][names.index("HARVESTER_UPGRADE_POD_NAME")]
            assert source["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_a_long_node_name_is_shortened_except_in_the_pod() -> None:
    node = "n" * 100 + ".example"
    job = node_job(OWNER, SETTINGS, node=node, job_type=JobType.PRE_DRAIN)
    assert pod(job)["nodeName"] == node
    assert {"name": "HARVESTER_UPGRADE_NODE_NAME", "value": node} in container(job)["env"]
    assert len(job["metadata"]["labels"]["management.harvesterhci.io/node"]) == 63


@pytest.mark.rule("workloads: a node Job is suspended only while the node is paused")
@pytest.mark.parametrize("job_type", NODE_TYPES)
def test_the_job_of_a_paused_node_is_suspended(job_type: JobType) -> None:
    running = JOBS[job_type]
    assert "suspend" not in running["spec"]
    held = node_job(OWNER, SETTINGS, node="n1", job_type=job_type, suspended=True)
    assert held == {**running, "spec": {**running["spec"], "suspend": True}}


class TestRestoreJob:
    JOB = restore_job(OWNER, SETTINGS, node="n1")

    @pytest.mark.rule(
        "api: node Jobs have node and one of four steps as labels",
        "api: Pods of node Jobs have the Job's labels",
        "workloads: the restore Job is named PLAN-node-upgrade-restore-vm-NODE",
    )
    def test_restore_name_and_labels(self) -> None:
        assert self.JOB["metadata"]["name"] == "up-node-upgrade-restore-vm-n1"
        labels = self.JOB["metadata"]["labels"]
        assert labels["management.harvesterhci.io/node"] == "n1"
        assert labels["management.harvesterhci.io/job-type"] == "restore-vm"
        assert self.JOB["spec"]["template"]["metadata"]["labels"] == labels

    @pytest.mark.rule("workloads: the Job runs upgrade-toolkit restore-vm --node NODE --upgrade PLAN on the node")
    def test_restore_command(self) -> None:
        assert pod(self.JOB)["nodeName"] == "n1"
        assert container(self.JOB)["command"] == ["upgrade-toolkit"]
        assert container(self.JOB)["args"] == ["restore-vm", "--node", "n1", "--upgrade", "up"]

    @pytest.mark.rule("workloads: the restore Job is unprivileged and has no access to the host")
    def test_restore_has_no_privileges(self) -> None:
        assert not {"hostPID", "hostNetwork", "volumes"} & pod(self.JOB).keys()
        assert not {"securityContext", "volumeMounts"} & container(self.JOB).keys()

    @pytest.mark.rule(
        "workloads: all Jobs have the tolerations",
        "workloads: every Job has backoffLimit 2",
    )
    def test_restore_tolerations_and_attempts(self) -> None:
        assert pod(self.JOB)["tolerations"] == tolerations()
        assert pod(self.JOB)["restartPolicy"] == "Never"
        assert pod(self.JOB)["serviceAccountName"] == "worker"
        assert self.JOB["spec"]["backoffLimit"] == 2
        assert self.JOB["spec"]["ttlSecondsAfterFinished"] == 604800

    def test_restore_deadline_exceeds_the_toolkit_timeout(self) -> None:
        assert 1800 < self.JOB["spec"]["activeDeadlineSeconds"] < 3600

    @pytest.mark.rule("workloads: the Job runs upgrade-toolkit restore-vm --node NODE --upgrade PLAN on the node")
    def test_restore_names_are_shortened_except_in_the_command(self) -> None:
        node = "n" * 100 + ".example"
        job = restore_job(Owner(name="p" * 253, uid="u"), SETTINGS, node=node)
        assert len(job["metadata"]["name"]) <= 63
        assert len(job["metadata"]["labels"]["management.harvesterhci.io/node"]) <= 63
        assert container(job)["args"] == ["restore-vm", "--node", node, "--upgrade", "p" * 253]
