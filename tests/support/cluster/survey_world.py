"""The Jobs and Pods of the survey's Plan, as the system-upgrade-controller and the kubelets leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import LABEL_COMPONENT, LABEL_PLAN_UID
from upgrade_manager.api.survey import SurveyFinding, SurveyReport
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, PODS, SUC_PLANS

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object

PLAN, PLACE = "up-survey", "cattle-system"
#: status.toolkitImage of our toolkit.
OWN = {"repository": "r/toolkit", "tag": "v1", "kind": "own"}
NO_STATE_PARTITION = SurveyFinding(check="state-partition", message="COS_STATE is not mounted. Mount it")
FULL = SurveyFinding(check="grub-environment", message="The kernel arguments have no room")


def report(node: str, *findings: SurveyFinding) -> str:
    """Return the termination message of a node's Pod."""
    return SurveyReport(node=node, findings=findings).encode()


class SurveyWorld:
    """Plays both for a plan named up."""

    def __init__(self, cluster: Harvester) -> None:
        self.cluster = cluster

    async def plan(self) -> Object:
        """Return the Plan."""
        return await self.cluster.client.get(SUC_PLANS, PLAN, namespace=PLACE)

    async def job(self, node: str, *, condition: str = "", owner: str = "", at: str = "2026-01-01T00:00:00Z") -> Object:
        """Create the Job of a node, with that condition since then."""
        plan = await self.plan()
        reference = {"apiVersion": SUC_PLANS.api_version, "kind": "Plan", "name": PLAN, "controller": True}
        labels = {**_labels(plan), "upgrade.cattle.io/node": node, "upgrade.cattle.io/plan": PLAN}
        metadata = {
            "name": f"apply-{PLAN}-on-{node}",
            "namespace": PLACE,
            "labels": labels,
            "ownerReferences": [{**reference, "uid": owner or objects.uid(plan)}],
        }
        container = {"name": "upgrade", "image": "r/toolkit:v1"}
        template = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}
        spec = {"parallelism": 1, "backoffLimit": 99, "template": template}
        ended = [{"type": condition, "status": "True", "lastTransitionTime": at, "lastProbeTime": at, "reason": "R"}]
        status = {"startTime": at, "conditions": ended if condition else []}
        return await self.cluster.put(JOBS, {"metadata": metadata, "spec": spec}, status=status)

    async def pod(self, job: Object, *, phase: str, state: Object, owner: str = "") -> None:
        """Create a Pod of the Job."""
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": objects.name(job), "controller": True}
        labels = {**_labels(job), "batch.kubernetes.io/job-name": objects.name(job)}
        metadata = {
            "name": f"{objects.name(job)}-{objects.uid(job)[:5]}",
            "namespace": PLACE,
            "labels": labels,
            "ownerReferences": [{**reference, "uid": owner or objects.uid(job)}],
        }
        spec = {"nodeName": labels.get("upgrade.cattle.io/node", ""), "containers": [{"name": "upgrade", "image": "x"}]}
        container = {"name": "upgrade", "image": "r/toolkit:v1", "imageID": "", "ready": False, "restartCount": 0}
        status = {"phase": phase, "containerStatuses": [{**container, "state": state}]}
        await self.cluster.put(PODS, {"metadata": metadata, "spec": spec}, status=status)

    async def ended(
        self, node: str, message: str, *, code: int = 0, condition: str = "Complete", **more: Any
    ) -> Object:
        """Create the Job of a node whose Pod has ended with a message."""
        job = await self.job(node, condition=condition, **more)
        state = {"terminated": {"exitCode": code, "message": message, "reason": "Completed" if not code else "Error"}}
        await self.pod(job, phase="Failed" if code else "Succeeded", state=state)
        return job

    async def unpulled(self, node: str, *, reason: str = "ErrImagePull", message: str = "no such host") -> Object:
        """Create the Job of a node whose Pod has no image."""
        job = await self.job(node)
        await self.pod(job, phase="Pending", state={"waiting": {"reason": reason, "message": message}})
        return job

    async def complete(self, *nodes: str) -> None:
        """Let the controller report the Plan as complete on these nodes."""
        await self.cluster.complete_plan(PLAN, *nodes)


def _labels(obj: Object) -> dict[str, str]:
    kept = {LABEL_COMPONENT, LABEL_PLAN_UID, "management.harvesterhci.io/upgrade-plan", "upgrade.cattle.io/node"}
    return {key: value for key, value in objects.labels(obj).items() if key in kept}
