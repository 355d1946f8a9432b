"""The Pods of Jobs run our commands in the simulation's process and time."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from hack import scenario as scenarios
from hack.bench.in_process import record
from hack.host.iso import ROOTFS
from hack.simulation import Simulation
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, started
from tests.support.programs.polling import eventually
from upgrade_manager import __version__
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import ANNOTATION_PROGRESS, JobType, ToolkitKind
from upgrade_manager.api.toolkit_image import ToolkitConfig
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, NODES, PODS, UPGRADE_PLANS, VIRTUAL_MACHINES
from upgrade_manager.resources.jobs import JobSettings, node_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.toolkit import POD_NAME, ToolkitImage
from upgrade_manager.toolkit.run.catalogue import COMMANDS, steps_of

if TYPE_CHECKING:
    from hack.bench.recorder import Recorder
    from upgrade_manager.kube.objects import Object

OWN = RunOptions(
    toolkit=ToolkitConfig(version=__version__, kind=ToolkitKind.OWN, image=ImageName(repository="me/own"), tag="v9")
)
#: The one cannot move, the other can.
VMS: list[dict[str, Any]] = [
    {"name": "fixed", "node": "node-0", "migratable": False},
    {"name": "free", "node": "node-1"},
]
NEW_OS = "Harvester v1.8.0"


def shown(recorder: Recorder) -> set[str]:
    """Return the steps that commands have shown at their Jobs, without their numbers."""
    bodies = [json.loads(one.request.body) for one in recorder.exchanges if one.request.method == "PATCH"]
    written = [objects.text(body, "metadata", "annotations", ANNOTATION_PROGRESS) for body in bodies]
    return {text.partition(" ")[2] for text in written if text}


@pytest.mark.full
async def test_whole_upgrade_runs_every_command() -> None:
    scenario = scenarios.load("three-nodes").changed(services=True, vms={"count": 0, "machines": VMS})
    async with Simulation(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = OWN
        recorder = record(simulation)
        async with stage.life():
            await stage.create_plan({**BY_VERSION, "restoreVM": True})
            plan = await stage.succeed()
        assert objects.status(plan)["checksums"]["checked"] is True
        nodes = (await stage.client.list(NODES)).items
        assert {objects.status(node)["nodeInfo"]["osImage"] for node in nodes} == {NEW_OS}
        assert not any(objects.spec(node).get("taints") for node in nodes)
        machine = await stage.client.get(VIRTUAL_MACHINES, "fixed", namespace="default")
        assert objects.spec(machine)["runStrategy"] == "Always"
        [restored] = await stage.events("RestoreVMCompleted")
        assert restored["message"].startswith("Restored 1 VMs for node ")
        steps = shown(recorder)
        assert {"compute-checksums", "wait-for-evacuation", "install-os", "start-vms", "upgrade-harvester"} <= steps
        assert steps <= {step.name for command in COMMANDS for step in steps_of(command)}


async def test_changed_root_file_system_is_not_installed() -> None:
    """The repository is plain HTTP: what a node gets is not what the mounted ISO has."""
    changed = "PRETTY_NAME=backdoor\n"
    scenario = scenarios.load("one-node").changed(repository={"changed": {ROOTFS: changed}})
    async with Simulation(scenario) as simulation:
        async with started(simulation, options=OWN) as stage:
            plan = await stage.fail()
        found, expected = sha256(changed.encode()).hexdigest(), objects.status(plan)["checksums"]["files"][f"/{ROOTFS}"]
        cause = f"/{ROOTFS} has the SHA-256 {found}, but the one on the ISO has {expected}"
        assert cause in condition(plan, "Progressing")[2]
        [node] = (await stage.client.list(NODES)).items
        assert objects.status(node)["nodeInfo"]["osImage"] != NEW_OS


async def create_job(simulation: Simulation, *, without: str = "") -> None:
    """Create a post-drain Job without this variable, whose plan has no repository."""
    client = simulation.client()
    head = {"apiVersion": UPGRADE_PLANS.api_version, "kind": UPGRADE_PLANS.kind, "metadata": {"name": "demo"}}
    plan = await client.create(UPGRADE_PLANS, {**head, "spec": BY_VERSION})
    settings = JobSettings(image=ToolkitImage(repository="me/own", tag="v9"), service_account="harvester")
    owner = Owner(name="demo", uid=objects.uid(plan))
    job = node_job(owner, settings, node="node-0", job_type=JobType.POST_DRAIN)
    [container] = job["spec"]["template"]["spec"]["containers"]
    container["env"] = [one for one in container["env"] if one["name"] != without]
    await client.create(JOBS, job)


async def pod_in(simulation: Simulation, phase: str) -> Object:
    """Wait for a Pod of the Job in this phase, and return the state of its container."""

    async def find() -> Object | None:
        pods = (await simulation.client().list(PODS, namespace="harvester-system")).items
        found = [pod for pod in pods if objects.name(pod).startswith("demo-")]
        return next((pod for pod in found if objects.status(pod).get("phase") == phase), None)

    pod: Object = await eventually(find, seconds=7200, pause=1)
    state: Object = objects.status(pod)["containerStatuses"][0]["state"]
    return state


@pytest.mark.full
@pytest.mark.parametrize(
    ("without", "code", "message"),
    [
        pytest.param(
            POD_NAME, 2, f"upgrade-manager node: environment variable {POD_NAME} is not set", id="no variable"
        ),
        pytest.param("", 1, "node post-drain: wait-for-repository: not done after 30 min", id="no repository"),
    ],
)
async def test_failed_command_ends_its_pod(without: str, code: int, message: str) -> None:
    async with Simulation("one-node") as simulation:
        await create_job(simulation, without=without)
        ended = (await pod_in(simulation, "Failed"))["terminated"]
        assert ended["exitCode"] == code
        assert ended["message"].startswith(message)


async def test_command_ends_with_its_host() -> None:
    async with Simulation("three-nodes") as simulation:
        await create_job(simulation)
        await pod_in(simulation, "Running")
        simulation.hosts.power_off("node-0")
        tasks = {task.get_name() for task in asyncio.all_tasks() if not task.cancelling()}
        assert not any(name.startswith("command in demo-") for name in tasks)
        simulation.hosts.power_on("node-0")
        assert (await pod_in(simulation, "Failed"))["terminated"]["exitCode"] == 255
        # The Job's second attempt runs the command again, on the host that has booted.
        await pod_in(simulation, "Running")
