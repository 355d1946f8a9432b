"""KubeVirt's updates of VMs, suspended before the Job of the cluster upgrade; cluster_upgrade.py calls it.

settings/update_methods.py changes and restores the list of methods; Fleet deploys it, at the old version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, HARVESTER_SYSTEM
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.remedy import Change, Remedy
from upgrade_manager.blockers.known_wait import DeployedChartWait
from upgrade_manager.facts import update_methods
from upgrade_manager.facts.kubevirt import KUBEVIRT, NAME
from upgrade_manager.facts.managed_charts import not_ready
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MANAGED_CHARTS
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.selections import HARVESTER_CHART, HARVESTER_KUBEVIRT
from upgrade_manager.pipeline.settings import overrides

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

_PHASE = PhaseName.CLUSTER_UPGRADE
_MESSAGE = f"ManagedChart {FLEET_LOCAL}/{update_methods.CHART}: waiting until KubeVirt's updates of VMs are suspended"


async def record(ctx: ReconcileContext) -> None:
    """Record what this phase changes, before the phase becomes the current one."""
    await overrides.record_originals(ctx, _PHASE)


async def suspend(ctx: ReconcileContext) -> Waiting | None:
    """Empty the list of methods; return the wait for Fleet, None once the list is deployed, or there is nothing to do.

    The list of another client, who has set it after the record, is left alone: the upgrade goes on with it.
    """
    entries = dict(overrides.of_phase(ctx, _PHASE))
    if entries:
        # The record precedes the changes of the manager, and those of the Job.
        ctx.status.waiting(_MESSAGE)
        await ctx.persist()
    entry = entries.get(overrides.METHODS)
    if entry is None:
        return None
    charts, kubevirts = await ctx.watch_all(HARVESTER_CHART, HARVESTER_KUBEVIRT)
    chart, kubevirt = charts.get(update_methods.CHART, FLEET_LOCAL), kubevirts.get(KUBEVIRT, HARVESTER_SYSTEM)
    if chart is None or kubevirt is None:
        return None
    now = update_methods.of_chart(chart)
    if now == entry.get("original"):
        await overrides.apply_overrides(ctx, _PHASE)
        overrides.report_changed(ctx, _PHASE, began=None)
        return _waiting(ctx, chart, "Fleet has not deployed the change yet")
    report(ctx)
    missing = _missing(chart, kubevirt) if now == entry.get("applied") else ""
    return _waiting(ctx, chart, missing) if missing else None


def report(ctx: ReconcileContext) -> None:
    """Record the event of the change, because a process that has died may not have recorded it."""
    overrides.report_changed(ctx, _PHASE, began=ctx.status.phase_began)


def _missing(chart: Object, kubevirt: Object) -> str:
    """Return why Fleet has not deployed the empty list; empty once it has.

    A paused chart is ready for no other reason than that it is paused: the Job of an earlier attempt may have done so.
    """
    if update_methods.of_kubevirt(kubevirt) != []:
        writer = update_methods.other_writer(kubevirt)
        why = f"{writer} has written it, and Fleet refuses to change it" if writer else not_ready(chart)
        return f"Fleet has not emptied workloadUpdateMethods of {NAME}: {why}"
    if objects.is_condition_true(chart, "Ready") or objects.is_true(chart, "spec", "paused"):
        return ""
    return f"it is not ready: {not_ready(chart)}"


def _waiting(ctx: ReconcileContext, chart: Object, missing: str) -> Waiting:
    name = objects.name(chart)
    wait = DeployedChartWait(
        namespace=FLEET_LOCAL,
        name=name,
        since=first_seen(ctx, DeployedChartWait, name),
        detail=missing,
        remedies=(way_out(chart),),
    )
    return Waiting(message=_MESSAGE, detail=missing, waits=(wait,))


def way_out(chart: Object) -> Remedy:
    """Return the remedy for a chart that Fleet does not deploy."""
    name = objects.name(chart)
    named_chart = f"-n {FLEET_LOCAL} {MANAGED_CHARTS.name}/{name}"
    if objects.is_true(chart, "spec", "paused"):
        patch = f"kubectl patch {named_chart} --type merge -p"
        go, stop = (f'{patch} \'{{"spec":{{"paused":{value}}}}}\'' for value in ("false", "true"))
        change = Change(kind=MANAGED_CHARTS.kind, namespace=FLEET_LOCAL, name=name, field="spec.paused", original=True)
        return Remedy("Let Fleet deploy it", command=go, undo=stop, changes=(change,))
    return Remedy("Show why", command=f"kubectl describe {named_chart} bundles.fleet.cattle.io/mcc-{name}")
