"""The labels and the selector that the server adds to a new Job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube.resources import JOBS

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row


#: The label with which a Job selects its Pods.
UID_LABEL = "batch.kubernetes.io/controller-uid"


def job_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Label the template of a new Job and select by the label, unless manualSelector is set.

    It needs the UID, so it is the first of the validating stages.
    """
    _ = (old, options)
    spec = new.get("spec")
    if row.resource.name != JOBS.name or operation != "CREATE" or not isinstance(spec, dict):
        return new
    template = spec.get("template")
    if spec.get("manualSelector") or not isinstance(template, dict):
        return new
    labels = _labels(new) | ((template.get("metadata") or {}).get("labels") or {})
    template = template | {"metadata": (template.get("metadata") or {}) | {"labels": labels}}
    chosen = spec.get("selector") or {}
    selector = chosen | {"matchLabels": {UID_LABEL: labels[UID_LABEL]} | (chosen.get("matchLabels") or {})}
    return new | {"spec": spec | {"template": template, "selector": selector}}


def job_labels_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Copy the labels of a new Job's template to a Job without labels, after they were validated."""
    _ = (old, options)
    if row.resource.name != JOBS.name or operation != "CREATE" or new["metadata"].get("labels"):
        return new
    labels = new["spec"]["template"].get("metadata", {}).get("labels")
    return new | {"metadata": new["metadata"] | {"labels": labels}} if labels else new


def _labels(job: Object) -> dict[str, str]:
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    return {UID_LABEL: uid, "batch.kubernetes.io/job-name": name, "controller-uid": uid, "job-name": name}
