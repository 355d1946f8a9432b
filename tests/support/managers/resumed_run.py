"""A plan that fails, is mended, and goes on in its next attempt, with what each attempt has created."""

from __future__ import annotations

import asyncio
import copy
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hack.apiserver.call import Call
from hack.faults.middleware import NoHook
from hack.simulation import Simulation
from hack.virtual_time import VirtualEventLoop
from tests.support.cluster.cluster_state import end_state
from tests.support.cluster.simulate import RepairableScenario
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, PLAN, REAL_STUCK, UpgradeRun, started
from tests.support.programs.polling import eventually
from tests.support.webhook import webhook
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_JOB_TYPE, LABEL_NODE
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS, JOBS
from upgrade_manager.kube.transport import Response
from webhook.cluster import LiveReader
from webhook.review import PLAN_KIND, AdmissionRequest

_CREATED = 201
_DAY = 86_400.0
#: Kinds that an attempt must not create for what is done.
_KINDS = {"Job", "Plan", "VirtualMachineImage", "Deployment", "Service"}
#: The fields that only plans with further attempts, or with pauses, have.
_OF_ATTEMPTS = ("attempt", "attempts", "pauses")


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


#: End states by scenario and spec.
_UNDISTURBED: dict[str, dict[str, Any]] = {}


async def undisturbed(
    scenario: RepairableScenario, spec: dict[str, Any] = BY_VERSION, *, options: RunOptions = OWN
) -> dict[str, Any]:
    """Return the end state of a run that never fails; of one run for all scenarios that differ in their faults."""
    sound = scenario.without_faults()
    key = f"{sound.model_dump_json()} {json.dumps(spec, sort_keys=True)} {options.toolkit.version}"
    if key not in _UNDISTURBED:
        async with Simulation(sound) as simulation, started(simulation, spec, options=options) as stage:
            await stage.succeed()
            _UNDISTURBED[key] = await comparable(stage)
    return copy.deepcopy(_UNDISTURBED[key])


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
    return await reviewed(stage, new, old=old)


async def reviewed(stage: UpgradeRun, new: Object, *, old: Object | None = None) -> list[str]:
    """Return the webhook's reasons to deny a plan that is created, or changed."""
    operation = "CREATE" if old is None else "UPDATE"
    request = AdmissionRequest(
        uid="1", operation=operation, kind=PLAN_KIND, subresource="", name=stage.name, new=new, old=old
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


async def skip_a_day() -> None:
    """Let a day pass at once: what every program would have done in it is due at its end, once."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualEventLoop)
    loop.jump(_DAY)
    await asyncio.sleep(60)


async def forget(stage: UpgradeRun) -> None:
    """Remove all events, as the API server does it after an hour, and the Jobs, as users may."""
    for event in (await stage.client.list(EVENTS)).items:
        await stage.client.delete(EVENTS, objects.name(event), namespace=objects.namespace(event))
    for job in (await stage.client.list(JOBS, namespace=HARVESTER_SYSTEM)).items:
        await stage.client.delete(JOBS, objects.name(job), namespace=HARVESTER_SYSTEM)


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
