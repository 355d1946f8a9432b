"""The delay of the reconcile that a change of an object causes (controller-runtime's predicates), for controller.py.

A cluster has a thousand nodes, and most changes that a store keeps alter only the text of messages and the states of
nodes in the status. A phase proceeds upon the others, which cause a reconcile at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from upgrade_manager.api.keys import ANNOTATION_PROGRESS, ANNOTATION_PROGRESS_TIME
from upgrade_manager.facts.endpoint_slices import ready_endpoints
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.facts.suc_nodes import LABEL_SUC_PLAN
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS, ENDPOINT_SLICES, JOBS, SUC_PLANS, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.kube.store import ChangeKind
from upgrade_manager.pipeline.status_throttle import MESSAGE_INTERVAL
from upgrade_manager.pipeline.transforms import without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.store import Change

#: Seconds until the reconcile of a change that only messages and node states show, which are not written more often.
MESSAGE_DELAY = MESSAGE_INTERVAL
#: Metadata that changes together with other fields.
_VERSIONS = frozenset({"resourceVersion", "generation"})
#: Metadata that the API server keeps about writes.
_OF_WRITES = _VERSIONS | {"managedFields"}
#: Annotations with the step that a Job's command reports.
_STEPS = frozenset({ANNOTATION_PROGRESS, ANNOTATION_PROGRESS_TIME})


class AwaitedFields(NamedTuple):
    """The fields of an object upon whose change a phase proceeds."""

    #: The metadata and the spec.
    desired: Mapping[str, Any]
    #: The awaited part of the status; false before a phase can proceed.
    result: object


def reconcile_delay(resource: Resource, change: Change) -> float | None:
    """Return the seconds until the plan is reconciled, 0 for at once; None if the change causes no reconcile.

    The object is as its transform leaves it.
    """
    if change.old is not None and _without_versions(change.obj) == _without_versions(change.old):
        return None
    read = _AWAITED.get(resource)
    if read is None:
        return 0.0
    if change.kind is ChangeKind.DELETED:
        is_message_only = _is_paused_by_controller(resource, change.obj)
    elif change.old is None:
        is_message_only = not read(change.obj).result
    else:
        is_message_only = read(change.obj) == read(change.old)
    return MESSAGE_DELAY if is_message_only else 0.0


def _is_paused_by_controller(resource: Resource, obj: Object) -> bool:
    """Return True for a paused Job of the system-upgrade-controller, which often replaces such a Job."""
    return resource == JOBS and LABEL_SUC_PLAN in objects.labels(obj) and objects.spec(obj).get("parallelism") == 0


def _job(job: Object) -> AwaitedFields:
    """Leave out what precedes the result of a Job: its start, its Pods, and the steps of its command but a hold.

    The success of a Plan's Job is left out, too: a phase waits for the Plan, which is complete later.
    """
    annotations = without(objects.annotations_of(job), _STEPS)
    spec, metadata = without(objects.spec(job), {"parallelism"}), {**objects.metadata(job), "annotations": annotations}
    state = JobState.of(job)
    is_complete = state.progress is Progress.COMPLETE and LABEL_SUC_PLAN not in objects.labels(job)
    result = (is_complete, state.is_failing, state.failed_attempts, state.holds)
    return AwaitedFields(desired({"metadata": metadata, "spec": spec}), result if any(result) else ())


def _plan(plan: Object) -> AwaitedFields:
    """Leave out what precedes the result of a Plan of the system-upgrade-controller."""
    complete = objects.condition(plan, "Complete")
    is_result = complete.get("status") == "True" or complete.get("reason") == "JobFailed"
    return AwaitedFields(desired(plan), complete if is_result else ())


def _deployment(deployment: Object) -> AwaitedFields:
    """Leave out which Pods of a Deployment are available, unless all are."""
    wanted = objects.number(deployment, "spec", "replicas")
    available = objects.number(deployment, "status", "availableReplicas") or 0
    return AwaitedFields(desired(deployment), available >= (1 if wanted is None else wanted))


def _endpoint_slice(endpoint_slice: Object) -> AwaitedFields:
    """Leave out which endpoints are ready, if one is."""
    return AwaitedFields(desired(endpoint_slice), ready_endpoints(endpoint_slice) > 0)


def _image(image: Object) -> AwaitedFields:
    """Leave out the percentage of an import."""
    return AwaitedFields(desired(image), without(objects.status(image), {"progress"}))


#: The awaited fields by kind; each change of an object of another kind causes a reconcile at once.
_AWAITED: Mapping[Resource, Callable[[Object], AwaitedFields]] = {
    JOBS: _job,
    SUC_PLANS: _plan,
    DEPLOYMENTS: _deployment,
    ENDPOINT_SLICES: _endpoint_slice,
    VIRTUAL_MACHINE_IMAGES: _image,
}


def desired(obj: Object) -> dict[str, Any]:
    """Return what clients want of the object: its spec, and its metadata but those about writes."""
    return {"metadata": without(objects.metadata(obj), _OF_WRITES), "spec": objects.spec(obj)}


def _without_versions(obj: Object) -> dict[str, Any]:
    return {**obj, "metadata": without(objects.metadata(obj), _VERSIONS)}
