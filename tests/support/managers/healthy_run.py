"""One undisturbed upgrade of three nodes in a process, for all tests that only read what it has left and written.

Files of tests/pipeline read it, each one aspect.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from prometheus_client.samples import Sample
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from hack import virtual_time
from hack.bench.in_process import MANAGER, record
from hack.bench.reaction import reactions
from hack.bench.recorder import Exchange
from hack.simulation import Simulation
from tests.support.managers.manager_process import ManagerProcess
from tests.support.managers.success_promise import SuccessPromise
from tests.support.managers.upgrade import UpgradeRun
from tests.support.managers.write_hooks import NoopWrites
from upgrade_manager.api.keys import ANNOTATION_CREATED_BY
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import CONFIG_MAPS, EVENTS, VERSIONS
from upgrade_manager.pipeline.controller import NAME

CREATOR = "alice"
#: Virtual seconds after which an ended plan is cleaned up.
SETTLED = 60.0
_CREATED = 201


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Gauges of the plan, each half a second until its end."""

    ratios: list[float]
    moved: list[float]
    stalled: set[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthyRun:
    """The traces of the upgrade."""

    #: Of the manager, in order.
    exchanges: list[Exchange]
    writes: NoopWrites
    conflicts: list[str]
    #: Seconds from each awaited change to the manager's next write.
    reactions: list[float]
    log: list[Any]
    exported: Exported
    #: The plan, and all events, after the clean-up.
    plan: Object
    events: list[Object]
    #: The release.
    version: Object
    #: Broken clauses of a success.
    broken: list[str]
    #: Of the plan, until its success.
    reconciles: int
    #: Names of the ConfigMaps before and after the plan's deletion.
    config_maps: tuple[set[str], set[str]]


@cache
def healthy_run() -> HealthyRun:
    """Return the process' run."""
    with capture_logs(processors=[merge_contextvars]) as log:
        return virtual_time.run(_run(log))


def creations(exchanges: Iterable[Exchange]) -> list[Object]:
    """Return the objects that were created, except events."""
    made = [one for one in exchanges if one.request.method == "POST" and one.status == _CREATED]
    return [json.loads(one.body) for one in made if not one.request.path.endswith("/events")]


def exported(life: ManagerProcess, name: str) -> list[float]:
    """Return the values of a metric as of the last refresh."""
    return [sample.value for sample in _samples(life, f"harvester_upgrade_{name}")]


def _samples(life: ManagerProcess, name: str) -> Iterator[Sample]:
    samples = (sample for metric in life.metrics.registry.collect() for sample in metric.samples)
    return (sample for sample in samples if sample.name == name)


def _reconciles(life: ManagerProcess) -> int:
    samples = _samples(life, "controller_runtime_reconcile_total")
    return int(sum(sample.value for sample in samples if sample.labels["controller"] == NAME))


async def _run(log: list[Any]) -> HealthyRun:
    async with Simulation("three-nodes") as simulation:
        stage, promise = await UpgradeRun.set_up(simulation), await SuccessPromise.of(simulation)
        writes = simulation.middleware.hook = NoopWrites(simulation)
        recorder = record(simulation)
        async with stage.life() as life:
            await stage.create_plan(annotations={ANNOTATION_CREATED_BY: CREATOR})
            gauges = await _exported(life)
            plan, reconciles = await stage.succeed(), _reconciles(life)
            await asyncio.sleep(SETTLED)
            exchanges, all_clients = recorder.of(MANAGER), list(recorder.exchanges)
            events, broken = (await stage.client.list(EVENTS)).items, await promise.broken()
            (version,) = (await stage.client.list(VERSIONS)).items
            before = await _config_maps(stage)
            await stage.delete()
            after = await _config_maps(stage)
    return HealthyRun(
        exchanges=exchanges,
        writes=writes,
        conflicts=stage.ledger.conflicts,
        reactions=reactions(all_clients, manager=MANAGER, os_image=simulation.scenario.release.os_image),
        log=log,
        exported=gauges,
        plan=plan,
        events=events,
        version=version,
        broken=broken,
        reconciles=reconciles,
        config_maps=(before, after),
    )


async def _exported(life: ManagerProcess) -> Exported:
    found = Exported(ratios=[], moved=[], stalled=set())
    while not found.ratios or found.ratios[-1] < 1:
        await asyncio.sleep(0.5)
        life.metrics.refresh()
        found.ratios.extend(exported(life, "progress_ratio"))
        found.moved.extend(exported(life, "last_progress_timestamp_seconds"))
        found.stalled.update(exported(life, "stalled"))
    return found


async def _config_maps(stage: UpgradeRun) -> set[str]:
    return {objects.name(one) for one in (await stage.client.list(CONFIG_MAPS)).items}
