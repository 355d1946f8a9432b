"""A plan that fails, is mended, and goes on in its next attempt, with what each attempt has created."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from hack.apiserver.call import Call
from hack.faults.middleware import NoHook
from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import end_state
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, PLAN, REAL_STUCK, UpgradeRun
from tests.support.programs.polling import eventually
from tests.support.webhook import webhook
from upgrade_manager.api.keys import LABEL_JOB_TYPE, LABEL_NODE
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.kube.transport import Response
from webhook.cluster import LiveReader
from webhook.review import PLAN_KIND, AdmissionRequest

_CREATED = 201
#: Kinds that an attempt must not create for what is done.
_KINDS = {"Job", "Plan", "VirtualMachineImage", "Deployment", "Service"}
#: The fields that only plans with further attempts have.
_OF_ATTEMPTS = ("attempt", "attempts")


@dataclass
class Work(NoHook):
    """The objects that managers have created, by attempt: a hook of the middleware."""

    attempt: int = 1
    _made: dict[int, Counter[str]] = field(default_factory=dict)

    async def after(self, number: int, call: Call, response: Response) -> None:
        _ = number
        if call.verb == "create" and response.status == _CREATED:
            made = json.loads(response.body)
            if made["kind"] in _KINDS:
                self._made.setdefault(self.attempt, Counter())[_work(made, self.attempt)] += 1

    def of(self, attempt: int) -> list[str]:
        """Return the kinds and names of what the attempt has created; for Jobs of nodes, with type and node."""
        return sorted((self._made.get(attempt) or Counter()).elements())


def _work(obj: Object, attempt: int) -> str:
    labels, kind, name = objects.labels(obj), obj["kind"], objects.name(obj)
    if kind in {"Job", "Plan"} and attempt > 1:
        assert name.endswith(f"-a{attempt}")
    if LABEL_JOB_TYPE in labels:
        return f"{labels[LABEL_JOB_TYPE]} {labels[LABEL_NODE]}"
    left_out = objects.mapping(obj, "spec", "nodeSelector").get("matchExpressions") if kind == "Plan" else None
    without = f" without {', '.join(left_out[0]['values'])}" if left_out else ""
    return f"{kind} {name.removeprefix(f'{PLAN}-').removesuffix(f'-a{attempt}')}{without}"


async def undisturbed(scenario: Scenario, spec: dict[str, Any] = BY_VERSION) -> dict[str, Any]:
    """Return the end state of a run that never fails."""
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        async with stage.life():
            await stage.create_plan(spec)
            await stage.succeed()
            return await comparable(stage)


async def comparable(stage: UpgradeRun) -> dict[str, Any]:
    """Return the cluster's lasting objects, equal for plans with and without further attempts."""
    state = await end_state(stage.simulation)
    plan = state[f"UpgradePlan {stage.name}"]
    plan["spec"].pop("attempt", None)
    for name in _OF_ATTEMPTS:
        plan["status"].pop(name, None)
    # An attempt that has waited has its conditions in another order.
    plan["status"]["conditions"].sort(key=lambda one: one["type"])
    return state


async def denials(stage: UpgradeRun, annotations: dict[str, str] | None = None, **spec: Any) -> list[str]:
    """Return the webhook's reasons to deny a change of the plan."""
    old = await stage.plan()
    metadata = {**old["metadata"], "annotations": {**objects.annotations_of(old), **(annotations or {})}}
    new = {**old, "metadata": metadata, "spec": {**objects.spec(old), **spec}}
    request = AdmissionRequest(
        uid="1", operation="UPDATE", kind=PLAN_KIND, subresource="", name=stage.name, new=new, old=old
    )
    admission = webhook.admission(reader=LiveReader(stage.simulation.client("webhook")))
    return [finding.message for finding in (await admission.decide(request)).findings]


async def request_attempt(stage: UpgradeRun, work: Work, **spec: Any) -> None:
    """Request the next attempt, which the webhook must allow, and wait until it has begun."""
    work.attempt += 1
    change = {"attempt": work.attempt, **spec}
    assert await denials(stage, **change) == []
    await stage.patch(spec=change)
    await stage.until_plan(lambda plan: objects.status(plan).get("attempt") == work.attempt)


async def cut_short(stage: UpgradeRun, selector: str) -> None:
    """Let the next such Job fail at once: in real time its attempts are half a minute apart."""

    async def cut() -> bool:
        found = (await stage.client.list(JOBS, label_selector=selector)).items
        running = [job for job in found if JobState.of(job).progress is Progress.RUNNING]
        for job in running:
            patch = MergePatch({"spec": {"activeDeadlineSeconds": 1}})
            await stage.client.patch(JOBS, objects.name(job), patch, namespace=objects.namespace(job))
        return bool(running)

    await eventually(cut, seconds=REAL_STUCK)
