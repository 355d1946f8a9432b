"""The reasons that Fleet reports for a ManagedChart that is not ready.

The webhook (webhook/checks/managed_charts.py) and the cluster upgrade (toolkit/charts/managed_charts.py) show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: The resources of a chart, or the objects of a resource, that a message shows.
_SHOWN = 3


def named(chart: Object) -> str:
    """Return the chart in messages."""
    return f"ManagedChart {FLEET_LOCAL}/{objects.name(chart)}"


def not_ready(chart: object) -> str:
    """Return Fleet's reasons why the chart's resources are not ready."""
    resources = objects.items(chart, "status", "summary", "nonReadyResources")
    reasons = [_reason(one) for one in resources[:_SHOWN]]
    if len(resources) > _SHOWN:
        reasons.append(f"{len(resources) - _SHOWN} more")
    words = objects.excerpt(objects.condition(chart, "Ready"), "message")
    return ("; ".join(reasons) or words or "Fleet reports no reason") + pause_hint(chart)


def pause_hint(chart: object) -> str:
    """Return the remedy for a chart that Fleet does not deploy because it is paused; empty for another chart."""
    return "; it is paused, set spec.paused to false to continue" if objects.is_true(chart, "spec", "paused") else ""


def _reason(resource: object) -> str:
    """Return the reason why one resource is not ready: the bundle's reason, or the reasons of the objects in it."""
    head = f"{objects.text(resource, 'name') or 'unnamed'} {objects.text(resource, 'bundleState') or 'NotReady'}"
    parts = [objects.excerpt(resource, "message")]
    parts += [_object(one) for one in objects.items(resource, "nonReadyStatus")[:_SHOWN]]
    return ": ".join(filter(None, [head, "; ".join(filter(None, parts))]))


def _object(one: object) -> str:
    messages = [text for text in objects.items(one, "summary", "message") if isinstance(text, str)]
    reason = ", ".join(messages) or objects.text(one, "summary", "state") or "not ready"
    kind, namespace, name = (objects.text(one, key) for key in ("kind", "namespace", "name"))
    return f"{kind} {namespace}/{name}: {reason}"
