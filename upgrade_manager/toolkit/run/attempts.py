"""The wait for earlier Pods that write to the same host.

The commands post_drain and single_node_upgrade begin with it.

A Job may start a Pod while the previous one still terminates, and a deleted plan leaves its Jobs running to their end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_JOB_TYPE, LABEL_NODE
from upgrade_manager.api.names import label_value
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import PODS
from upgrade_manager.resources.jobs import REBOOTING
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def earlier_attempts(context: ToolkitContext) -> str:
    """Return the older Pods that upgrade this node and whose containers may run."""
    types = ",".join(sorted(REBOOTING))
    selector = f"{LABEL_NODE}={label_value(context.node)},{LABEL_JOB_TYPE} in ({types})"
    found = (await context.client.list(PODS, namespace=HARVESTER_SYSTEM, label_selector=selector)).items
    # Only the younger of two Pods waits, so that they never wait for each other.
    last = max((_age(pod) for pod in found if objects.name(pod) == context.pod), default=None)
    running = [
        objects.name(pod)
        for pod in found
        if objects.name(pod) != context.pod and not is_final(pod) and (last is None or _age(pod) < last)
    ]
    return f"Pod {HARVESTER_SYSTEM}/{running[0]} still upgrades node {context.node}" if running else ""


def _age(pod: Object) -> tuple[str, str]:
    return objects.metadata(pod).get("creationTimestamp") or "", objects.name(pod)


WAIT_FOR_EARLIER_ATTEMPTS = Step(name="wait-for-earlier-attempts", timeout=2 * 3600, missing=earlier_attempts)
