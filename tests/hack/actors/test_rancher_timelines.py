"""The simulated planner, drain controller and system-agents against recordings of Rancher: sequences, never times."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from hack import virtual_time
from hack.scenario import load
from hack.simulation import Simulation
from tests.hack.actors.rancher_script import CordonsRefused, Script
from tests.hack.actors.rancher_timeline import FOLDER, Timeline, recorded, recording
from tests.support.managers.manager_restarts import in_background

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hack.scenario import Scenario

_RANCHER = "rancher"


async def _healthy(script: Script) -> None:
    await script.patch()
    await script.settle()


async def _twice(script: Script) -> None:
    await _healthy(script)
    await _healthy(script)


async def _annotation_only(script: Script) -> None:
    await script.patch_cluster({}, {}, labels={"example.com/a": "b"})
    await script.settle()


async def _registries(script: Script) -> None:
    await _healthy(script)
    await script.patch_cluster({}, {"registries": {"mirrors": {"docker.io": {"endpoint": ["https://other"]}}}})
    await script.settle()


async def _bump_twice(script: Script) -> None:
    await script.patch()
    await script.until("drain-done")
    await _twice(script)


async def _changed_in_pre_drain(script: Script) -> None:
    await script.patch()
    await script.until("pre-drain")
    await _healthy(script)


async def _removed(script: Script) -> None:
    script.held = {"node-0"}
    await _changed_in_pre_drain(script)
    script.held = set()
    await script.settle()


async def _hooks_removed(script: Script) -> None:
    script.held = {"node-0"}
    await _changed_in_pre_drain(script)


async def _cordon_refused(script: Script) -> None:
    refused = CordonsRefused("node-0", "node-1")
    script.simulation.server.chain.validating.append(refused)
    await script.patch()
    await asyncio.sleep(25)
    refused.nodes.clear()
    await script.settle()


async def _late_hook(script: Script) -> None:
    script.held = {"node-0"}
    await script.patch()
    await script.until("pre-drain")
    await asyncio.sleep(8)
    await script.uncordon("node-0")
    await asyncio.sleep(17)
    script.held = set()
    await script.settle()


async def _not_ready(script: Script) -> None:
    await script.patch()
    script.simulation.hosts.power_off("node-1")
    await asyncio.sleep(60)
    script.simulation.hosts.power_on("node-1")
    await script.settle()


async def _not_ready_in_drain(script: Script) -> None:
    await script.patch()
    await script.until("pre-drain")
    script.simulation.hosts.power_off("node-0")
    await asyncio.sleep(45)
    script.simulation.hosts.power_on("node-0")
    await script.settle()


async def _planner_killed(script: Script) -> None:
    await script.patch()
    for stage in ("pre-drain", "drain-done", "uncordon", "post-drain"):
        await script.until(stage)
        script.simulation.freezer.freeze(_RANCHER)
        await asyncio.sleep(3)
        script.simulation.freezer.thaw(_RANCHER)
    await script.settle()


async def _wrong_value(script: Script) -> None:
    script.held = {"node-0"}
    await script.patch()
    await script.until("pre-drain")
    texts = recording("wrong-value")["texts"]
    for value in ("true", texts["D2"], texts["D3"]):
        await script.answer("node-0", "pre-hook", value)
        await asyncio.sleep(5)
    script.held = set()
    await script.settle()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One recorded run."""

    script: Callable[[Script], Awaitable[None]] = _healthy
    #: Virtual seconds until a hook is answered, as in the recording.
    delay: float = 0.5
    #: False if another node is down, so that the reboots would stop the API server.
    reboots: bool = True
    #: Changes of the scenario.
    changes: dict[str, Any] = field(default_factory=dict)


RUNS = {
    "annotation-only": Run(script=_annotation_only),
    # The second increase reaches the planner between the first plan's delivery and its application.
    "bump-twice": Run(script=_bump_twice, changes={"durations": {"kubelet_upgrade": 5}}),
    "cordon-refused": Run(script=_cordon_refused),
    "failed-plan": Run(changes={"node_faults": {"failing_plans": {"node-0": 3}}}),
    "healthy": Run(script=_twice),
    "hooks-removed-pre": Run(script=_hooks_removed),
    "late-hook": Run(script=_late_hook),
    "not-ready": Run(script=_not_ready, reboots=False),
    "not-ready-in-drain": Run(script=_not_ready_in_drain),
    "one": Run(),
    "options-changed-pre": Run(script=_changed_in_pre_drain, delay=3.0),
    "planner-killed": Run(script=_planner_killed, delay=2.0),
    "registries": Run(script=_registries),
    "strategy-only": Run(script=_twice),
    "strategy-removed-pre": Run(script=_removed),
    "unknown-version": Run(),
    "unlimited": Run(),
    "workers": Run(),
    "wrong-value": Run(script=_wrong_value),
}
#: In the default tier.
DEFAULT = {"healthy", "late-hook"}


def test_every_recording_has_a_script() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == RUNS.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in DEFAULT else pytest.mark.full) for name in RUNS]
)
def test_simulated_rancher_acts_as_recorded(name: str) -> None:
    assert virtual_time.run(_simulate(name, RUNS[name])) == recorded(name)


async def _simulate(name: str, run: Run) -> object:
    recording_ = recording(name)
    scenario = _scenario(recording_, run)
    async with Simulation(scenario) as simulation:
        script = Script(simulation, recording_, delay=run.delay, reboots=run.reboots)
        await script.create_pods()
        timeline = Timeline(scenario, recording_["texts"])
        simulation.server.storage.observers.append(timeline.observe)
        async with in_background(script.answer_hooks()):
            await run.script(script)
    return timeline.sequences


def _scenario(recording_: dict[str, Any], run: Run) -> Scenario:
    """Return a cluster as at the recording's start, whose hosts boot only when the script says so."""
    first = [line for line in recording_["timeline"] if line["by"] == "state" and line["t"] == 0]
    (version,) = {line["change"]["kubernetesVersion"][1] for line in first if line["object"] == "cluster/local"}
    nodes = [line["object"].partition("/")[2] for line in first if line["object"].startswith("node/")]
    return load("three-nodes").changed(
        software={"kubernetes": version},
        nodes={"count": len(nodes)},
        vms={"count": 0},
        # Rancher was recorded without Harvester, whose webhook permits one cordon only.
        harvester={"node_down": False, "node_validator": False},
        **{**run.changes, "node_faults": {"lost_on_reboot": nodes, **run.changes.get("node_faults", {})}},
    )
