"""Every ManagedChart of Rancher is Ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.managed_charts import named, not_ready
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MANAGED_CHARTS as RESOURCE
from webhook.check import Check, Finding
from webhook.listings import MANAGED_CHARTS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    charts = await subject.cluster.list(MANAGED_CHARTS)
    return [finding for chart in charts if (finding := _finding(chart))]


def _finding(chart: Object) -> Finding | None:
    ready = objects.condition(chart, "Ready")
    if objects.text(ready, "status") == "True":
        return None
    show = f"kubectl describe {RESOURCE.name} -n {FLEET_LOCAL} {objects.name(chart)}"
    remedy = Remedy("Wait until it is, or repair it", command=show)
    return Finding(problem=f"{named(chart)} is not ready: {not_ready(chart)}", remedies=(remedy,))


CHECK = Check(name="managed charts", field="spec", find=_find)
