"""Rules for Jobs and Deployments: what must be there, and what never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema import pod_templates
from hack.apiserver.schema.field_error import FieldError, invalid, not_supported, required
from hack.apiserver.schema.object_meta import validate_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

_IMMUTABLE = "field is immutable"
#: By which a Job tells its Pods from those of all others.
UID_LABEL = "batch.kubernetes.io/controller-uid"
_JOB_NUMBERS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
#: What of the template of a Job that is suspended, and never ran, may still change.
_SCHEDULING = ("nodeSelector", "tolerations", "affinity", "schedulingGates")


def job(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Job."""
    spec = new.get("spec") or {}
    if old is not None:
        yield from _changed_job(spec, old.get("spec") or {}, old.get("status") or {})
        yield from _generated(new, spec, spec.get("template") or {})
        return
    for field in _JOB_NUMBERS:
        yield from _not_negative(spec, field)
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
    template = spec.get("template") or {}
    yield from _generated(new, spec, template)
    yield from pod_templates.template(template, "spec.template")
    if (template.get("spec") or {}).get("restartPolicy") == "Always":
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _generated(new: Object, spec: Object, template: Object) -> Iterator[FieldError]:
    """A Job's selector is the server's, unless the Job says that it is its own."""
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if spec.get("selector") is None:
        yield required("spec.selector")
    elif not spec.get("manualSelector") and wanted != {UID_LABEL: new["metadata"].get("uid")}:
        yield invalid("spec.selector", spec.get("selector"), "`selector` not auto-generated")
    if spec.get("selector") is None or not wanted.items() <= (labels or {}).items():
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _changed_job(spec: Object, old: Object, status: Object) -> Iterator[FieldError]:
    for field in _JOB_NUMBERS:
        yield from _not_negative(spec, field)
    if spec.get("completions") != old.get("completions") and old.get("completionMode") != "Indexed":
        yield invalid("spec.completions", spec.get("completions"), _IMMUTABLE)
    if spec.get("selector") != old.get("selector"):
        yield invalid("spec.selector", spec.get("selector"), _IMMUTABLE)
    idle = old.get("suspend") and not status.get("startTime")
    if _fixed(spec.get("template"), idle=bool(idle)) != _fixed(old.get("template"), idle=bool(idle)):
        yield invalid("spec.template", spec.get("template"), _IMMUTABLE)


def _fixed(template: Object | None, *, idle: bool) -> Any:
    """What of a template must not change."""
    if not idle or template is None:
        return template
    pod = {key: value for key, value in (template.get("spec") or {}).items() if key not in _SCHEDULING}
    return {"spec": pod}


def _not_negative(spec: Object, field: str) -> Iterator[FieldError]:
    value = spec.get(field)
    if value is not None and value < 0:
        yield invalid(f"spec.{field}", value, "must be greater than or equal to 0")


def deployment(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Deployment."""
    spec = new.get("spec") or {}
    template = spec.get("template") or {}
    yield from _not_negative(spec, "replicas")
    yield from _selected(spec, (template.get("metadata") or {}).get("labels"))
    yield from pod_templates.template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ("Always",))
    kind = (spec.get("strategy") or {}).get("type")
    if kind not in {"Recreate", "RollingUpdate"}:
        shown = {"Type": kind, "RollingUpdate": None}
        yield not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate"))
    if old is not None and spec.get("selector") != (old.get("spec") or {}).get("selector"):
        yield invalid("spec.selector", spec.get("selector"), _IMMUTABLE)


def _selected(spec: Object, labels: Object | None) -> Iterator[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    elif not selector:
        yield invalid("spec.selector", {}, "empty selector is invalid for deployment")
    wanted = (selector or {}).get("matchLabels") or {}
    yield from validate_labels(wanted, "spec.selector.matchLabels")
    if selector is None or not wanted.items() <= (labels or {}).items():
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
