"""Recordings of the real and the simulated system-upgrade-controller in a comparable form.

Order and values are compared, times are not: uids are masked, and a condition's time counts by whether it changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hack.faults.call import call_of

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

_FOLDER = Path(__file__).parent.parent / "hack" / "actors" / "recordings"
#: Defaults of the real API server.
_DEFAULTS: dict[str, Any] = {
    "manualSelector": False,
    "completionMode": "NonIndexed",
    "suspend": False,
    "schedulerName": "default-scheduler",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
_BY_SERVER = ("selector", "serviceAccount")
_BY_JOB_STRATEGY = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")


def recording(name: str) -> dict[str, Any]:
    """Load a recording."""
    loaded: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


class Wiretap:
    """A `Transport` that records one user agent's writes in the recordings' form."""

    def __init__(self, inner: Transport, *, user_agent: str) -> None:
        self._inner = inner
        self._user_agent = user_agent
        self.writes: list[dict[str, Any]] = []

    async def send(self, request: Request) -> Response:
        """Forward it."""
        response = await self._inner.send(request)
        call = call_of(request)
        if call.is_write and call.user_agent == self._user_agent:
            self.writes.append(_write(request, response))
        return response

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Forward it."""
        return self._inner.open(request)


def _write(request: Request, response: Response) -> dict[str, Any]:
    call = call_of(request)
    resource = call.resource.split(".")[0] + (f"/{call.subresource}" if call.subresource else "")
    answer, sent = json.loads(response.body or b"{}"), json.loads(request.body or b"{}")
    entry: dict[str, Any] = {"verb": call.verb, "resource": resource, "code": response.status}
    if resource == "events":
        return entry | {"reason": sent.get("reason"), "count": sent.get("count")}
    entry["name"] = call.name or answer.get("metadata", {}).get("name")
    if resource == "plans/status":
        status = sent["status"]
        complete = next(one for one in status["conditions"] if one["type"] == "Complete")
        return entry | {
            "applying": status.get("applying", []),
            "complete": f"{complete['status']}/{complete['reason']}",
        }
    if resource == "jobs" and call.verb == "delete":
        return entry | {"propagationPolicy": sent["propagationPolicy"]}
    if resource == "jobs":
        return entry | {"parallelism": sent["spec"]["parallelism"]}
    return entry | {"planLabels": plan_labels(sent)}


def plan_labels(node: Object) -> dict[str, str]:
    """Return the labels of Plans on a node."""
    labels: dict[str, str] = node["metadata"].get("labels") or {}
    return {key: value for key, value in labels.items() if key.startswith("plan.upgrade.cattle.io/")}


def effective(writes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the successful writes, in order, without Events."""
    chosen = [one for one in writes if one["code"] in {200, 201} and one["resource"] != "events"]
    return [{key: value for key, value in one.items() if key not in {"t", "code"}} for one in chosen]


def milestones(writes: list[dict[str, Any]], node: str) -> tuple[list[str], list[str]]:
    """Return what the controller does for one node, in order: the partial order that every run has.

    The first list has the Job and the label, the second the Plan's status: label and status follow the Job's completion
    independently, as writes for different nodes do. A paused Job is deleted and created again, or resumed by a patch:
    both are recorded, and both are "running Job" here.
    """
    work: list[str] = []
    status: list[str] = []
    is_applying = False
    for write in writes:
        if write["resource"] == "plans/status":
            if (node in write["applying"]) != is_applying:
                is_applying = not is_applying
                status.append("applying" if is_applying else "applied")
                work += ["applying"] if is_applying else []
            if write["complete"] in {"True/Complete", "False/JobFailed"}:
                status.append(write["complete"])
                work.append(write["complete"])
        elif write["resource"] == "nodes" and write["name"] == node:
            work.append("labelled")
        elif write["resource"] == "jobs" and f"-on-{node}-" in write["name"] and write["verb"] != "delete":
            work.append("running Job" if write["parallelism"] == 1 else "paused Job")
    return work, status


def bare_job(job: dict[str, Any]) -> Any:
    """Return a Job's labels, annotations, owners and spec, without server defaults and uids."""
    metadata = {key: job["metadata"][key] for key in ("name", "namespace", "labels", "annotations", "ownerReferences")}
    metadata["annotations"] = {**metadata["annotations"], "objectset.rio.cattle.io/applied": "packed"}
    return _bare({"metadata": metadata, "spec": job["spec"]})


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if key not in (*_BY_SERVER, *_BY_JOB_STRATEGY)}
    kept = {key: one for key, one in kept.items() if key not in _DEFAULTS or one != _DEFAULTS[key]}
    # A Pod's securityContext is an empty object on the server; a container's is not.
    kept = {key: one for key, one in kept.items() if not (key == "securityContext" and one == {})}
    return {key: "uid" if key == "uid" else _bare(one) for key, one in kept.items()}


def plan_states(statuses: list[dict[str, Any]], *, time: str) -> list[Any]:
    """Return a Plan's statuses in order; a condition's time is replaced by whether it changed."""
    states: list[Any] = []
    before: dict[str, Any] = {}
    for status in statuses:
        conditions = []
        for one in status.get("conditions", []):
            conditions.append({key: one.get(key) for key in ("type", "status", "reason", "message")})
            conditions[-1]["moved"] = before.get(one["type"]) not in (None, one.get(time))
            before[one["type"]] = one.get(time)
        states.append({**status, "conditions": conditions} if status else {})
    return states


def job_states(entries: list[dict[str, Any]]) -> list[Any]:
    """Return a Job's distinct states in order: parallelism, counts and conditions."""
    states: list[Any] = []
    for one in entries:
        state = (one["event"], one["parallelism"], one["status"], one["conditions"])
        if not states or states[-1][1:] != state[1:] or state[0] != "MODIFIED":
            states.append(state)
    return states
