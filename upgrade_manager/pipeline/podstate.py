"""Why a Pod is not ready, in the words of whoever knows: the scheduler, the kubelet, the container's runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import PODS
from upgrade_manager.pipeline.explanation import explaining

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_OVER = frozenset({"Succeeded", "Failed"})
#: What a container waits for as a matter of course.
_ORDINARY = frozenset({"ContainerCreating", "PodInitializing"})


async def unready_pod(client: Client, *, namespace: str, label_selector: str) -> str:
    """The first of the selected Pods that is not ready, and why; empty where all are, or where none can be read.

    One that somebody says something about comes before one that is merely slow.
    """
    pods = await explaining(client, PODS, namespace=namespace, label_selector=label_selector)
    unready = [(_fault(pod), pod) for pod in sorted(pods, key=objects.name) if _is_expected(pod)]
    unready.sort(key=lambda found: not found[0])
    return next((describe(pod) for _, pod in unready), "")


def describe(pod: Object) -> str:
    """The Pod, its phase, and what holds it up where somebody says so."""
    phase = objects.status(pod).get("phase") or "Pending"
    is_running = phase == "Running"
    state = "is running, but not ready" if is_running else f"is {phase}"
    fault = _fault(pod)
    return f"Pod {objects.name(pod)} {state}" + (f" ({fault})" if fault else "")


def _is_expected(pod: Object) -> bool:
    is_over = objects.status(pod).get("phase") in _OVER
    return not is_over and not objects.is_deleting(pod) and not objects.is_condition_true(pod, "Ready")


def _fault(pod: Object) -> str:
    return next(_faults(pod), "")


def _faults(pod: Object) -> Iterator[str]:
    status = objects.status(pod)
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in _ORDINARY:
            yield from _said(waiting)
    scheduled = objects.condition(pod, "PodScheduled") or {}
    if scheduled.get("status") == "False":
        yield from _said(scheduled)
    yield from _said(status)


def _said(by: dict[str, Any]) -> Iterable[str]:
    text = ": ".join(part for part in (by.get("reason"), by.get("message")) if part)
    return [text] if text else []
