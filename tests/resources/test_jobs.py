"""The Jobs, field by field: their command lines and environment are what the published toolkit image understands."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.api.keys import JobType
from upgrade_manager.resources.jobs import JobSettings, cluster_upgrade_job, node_job, restore_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.tolerations import tolerations
from upgrade_manager.resources.toolkit import ToolkitImage

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
    def test_it_is_tried_three_times_and_kept_for_a_week(self, job: dict[str, Any]) -> None:
        assert job["spec"]["backoffLimit"] == 2
        assert job["spec"]["ttlSecondsAfterFinished"] == 604800

    @pytest.mark.rule(
        "workloads: the cluster Job's Pod never restarts",
        "workloads: a node Job's TTL is 604800 seconds, and its Pod never restarts",
        "workloads: all Jobs have the tolerations",
    )
    def test_its_pod_never_restarts_and_tolerates_an_upgrade(self, job: dict[str, Any]) -> None:
        assert pod(job)["restartPolicy"] == "Never"
        assert pod(job)["tolerations"] == tolerations()

    @pytest.mark.rule(
        "workloads: the container apply runs upgrade_manifests.sh with HARVESTER_UPGRADEPLAN_NAME",
        "workloads: the container apply runs upgrade_node.sh with the job type as argument",
        "workloads: a node Job has HARVESTER_UPGRADEPLAN_NAME and HARVESTER_UPGRADE_NODE_NAME",
    )
    def test_its_one_container_is_the_toolkits_apply(self, job: dict[str, Any]) -> None:
        assert container(job)["name"] == "apply"
        assert container(job)["image"] == "example/toolkit:v1.7.0"
        assert container(job)["env"][0] == {"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "up"}

    def test_it_runs_under_the_account_of_the_settings(self, job: dict[str, Any]) -> None:
        assert pod(job)["serviceAccountName"] == "worker"

    @pytest.mark.rule("api: Pods of node Jobs have the Job's labels")
    def test_its_pods_carry_its_labels(self, job: dict[str, Any]) -> None:
        assert job["spec"]["template"]["metadata"]["labels"] == job["metadata"]["labels"]


@pytest.mark.rule(
    "pipeline: ClusterUpgrade runs upgrade_manifests.sh in one Job",
    "workloads: the cluster Job is named PLAN-cluster-upgrade",
    "workloads: the container apply runs upgrade_manifests.sh with HARVESTER_UPGRADEPLAN_NAME",
)
def test_the_cluster_is_upgraded_by_one_command_without_privileges() -> None:
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
    def test_its_name_says_plan_step_and_node(self, job_type: JobType) -> None:
        assert JOBS[job_type]["metadata"]["name"] == f"up-node-upgrade-{job_type}-n1"

    @pytest.mark.rule("api: node Jobs have node and one of four steps as labels")
    def test_its_labels_say_node_and_step(self, job_type: JobType) -> None:
        labels = JOBS[job_type]["metadata"]["labels"]
        assert labels["management.harvesterhci.io/node"] == "n1"
        assert labels["management.harvesterhci.io/job-type"] == job_type

    @pytest.mark.rule("workloads: a node Job's Pod is privileged, in the host's PID namespace, with its / at /host")
    def test_it_runs_on_the_node_as_root_of_the_host(self, job_type: JobType) -> None:
        job = JOBS[job_type]
        assert pod(job)["nodeName"] == "n1"
        assert pod(job)["hostPID"] is True
        assert container(job)["securityContext"] == {"privileged": True}
        assert container(job)["volumeMounts"] == [{"name": "host-root", "mountPath": "/host"}]
        (volume,) = pod(job)["volumes"]
        assert (volume["name"], volume["hostPath"]["path"]) == ("host-root", "/")

    @pytest.mark.rule("workloads: the container apply runs upgrade_node.sh with the job type as argument")
    def test_it_calls_the_nodes_script_with_its_step(self, job_type: JobType) -> None:
        assert container(JOBS[job_type])["command"] == ["upgrade_node.sh"]
        assert container(JOBS[job_type])["args"] == [job_type.value]

    @pytest.mark.rule("workloads: a node Job has HARVESTER_UPGRADEPLAN_NAME and HARVESTER_UPGRADE_NODE_NAME")
    def test_it_learns_its_node(self, job_type: JobType) -> None:
        assert {"name": "HARVESTER_UPGRADE_NODE_NAME", "value": "n1"} in container(JOBS[job_type])["env"]

    @pytest.mark.rule("workloads: post-drain and single-node-upgrade Jobs have HARVESTER_UPGRADE_POD_NAME")
    def test_it_learns_its_pod_where_it_ends_with_a_reboot(self, job_type: JobType) -> None:
        names = [entry["name"] for entry in container(JOBS[job_type])["env"]]
        assert ("HARVESTER_UPGRADE_POD_NAME" in names) == (job_type is not JobType.PRE_DRAIN)
        if job_type is not JobType.PRE_DRAIN:
            source = container(JOBS[job_type])["env"][names.index("HARVESTER_UPGRADE_POD_NAME")]
            assert source["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_a_long_node_name_is_shortened_in_names_and_labels_but_not_in_the_pod() -> None:
    node = "n" * 100 + ".example"
    job = node_job(OWNER, SETTINGS, node=node, job_type=JobType.PRE_DRAIN)
    assert pod(job)["nodeName"] == node
    assert {"name": "HARVESTER_UPGRADE_NODE_NAME", "value": node} in container(job)["env"]
    assert len(job["metadata"]["labels"]["management.harvesterhci.io/node"]) == 63


@pytest.mark.rule("workloads: a node Job is suspended only while the node is paused")
@pytest.mark.parametrize("job_type", NODE_TYPES)
def test_a_node_that_is_held_back_has_the_same_job_suspended(job_type: JobType) -> None:
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
    def test_its_name_and_labels_say_plan_step_and_node(self) -> None:
        assert self.JOB["metadata"]["name"] == "up-node-upgrade-restore-vm-n1"
        labels = self.JOB["metadata"]["labels"]
        assert labels["management.harvesterhci.io/node"] == "n1"
        assert labels["management.harvesterhci.io/job-type"] == "restore-vm"
        assert self.JOB["spec"]["template"]["metadata"]["labels"] == labels

    @pytest.mark.rule("workloads: the Job runs upgrade-toolkit restore-vm --node NODE --upgrade PLAN on the node")
    def test_it_runs_the_toolkits_command_on_the_node(self) -> None:
        assert pod(self.JOB)["nodeName"] == "n1"
        assert container(self.JOB)["command"] == ["upgrade-toolkit"]
        assert container(self.JOB)["args"] == ["restore-vm", "--node", "n1", "--upgrade", "up"]

    @pytest.mark.rule("workloads: the restore Job is unprivileged and has no access to the host")
    def test_it_has_no_privileges_and_no_host(self) -> None:
        assert not {"hostPID", "hostNetwork", "volumes"} & pod(self.JOB).keys()
        assert not {"securityContext", "volumeMounts"} & container(self.JOB).keys()

    @pytest.mark.rule(
        "workloads: all Jobs have the tolerations",
        "workloads: every Job has backoffLimit 2",
    )
    def test_it_tolerates_an_upgrade_and_is_tried_three_times(self) -> None:
        assert pod(self.JOB)["tolerations"] == tolerations()
        assert pod(self.JOB)["restartPolicy"] == "Never"
        assert pod(self.JOB)["serviceAccountName"] == "worker"
        assert self.JOB["spec"]["backoffLimit"] == 2
        assert self.JOB["spec"]["ttlSecondsAfterFinished"] == 604800

    def test_it_ends_whatever_happens_but_not_before_the_toolkit_has_lost_its_patience(self) -> None:
        assert 1800 < self.JOB["spec"]["activeDeadlineSeconds"] < 3600

    @pytest.mark.rule("workloads: the Job runs upgrade-toolkit restore-vm --node NODE --upgrade PLAN on the node")
    def test_long_names_are_shortened_in_name_and_label_but_not_in_the_command(self) -> None:
        node = "n" * 100 + ".example"
        job = restore_job(Owner(name="p" * 253, uid="u"), SETTINGS, node=node)
        assert len(job["metadata"]["name"]) <= 63
        assert len(job["metadata"]["labels"]["management.harvesterhci.io/node"]) <= 63
        assert container(job)["args"] == ["restore-vm", "--node", node, "--upgrade", "p" * 253]
