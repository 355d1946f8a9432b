"""A world for the toolkit's commands: a simulated cluster, a host's tree, and the ISO's files."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from hack.host.helm import SimulatedHelm
from hack.host.programs import SimulatedPrograms
from hack.virtual_time import virtual_now
from tests.support.cluster.kubectl import manifest
from tests.support.cluster.simulate import embedded
from tests.support.toolkit.toolkit_interrupts import Killed
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.toolkit.charts.chart_files import ChartFiles
from upgrade_manager.toolkit.charts.helm import Helm
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.iso.checksums import Checksums
from upgrade_manager.toolkit.iso.migration import Migration
from upgrade_manager.toolkit.iso.release_files import ReleaseFiles
from upgrade_manager.toolkit.iso.repository_files import FileBody
from upgrade_manager.toolkit.run.catalogue import steps_of
from upgrade_manager.toolkit.run.context import ToolkitContext
from upgrade_manager.toolkit.run.plan_events import PlanEvents
from upgrade_manager.toolkit.run.steps import run_steps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hack.scenario import Scenario
    from hack.simulation import Simulation
    from tests.support.cluster.simulate import Simulate
    from upgrade_manager.kube.client import Client

PLAN = "demo"
NODE = "node-0"
POD = "demo-node-upgrade-post-drain-node-0-x7k2p"
PIECE = 64


class IsoFiles:
    """RepositoryFiles in memory."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        #: Errors of the next requests, in order; None for a response.
        self.errors: list[Exception | None] = []
        #: Bytes of a path after which the command is killed, once.
        self.killed_after: dict[str, int] = {}
        self.requests: list[tuple[str, int]] = []

    @asynccontextmanager
    async def open(self, path: str, *, offset: int = 0, etag: str = "") -> AsyncIterator[FileBody]:
        self.requests.append((path, offset))
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        if path not in self.files:
            raise NotFound(f"{path} does not exist")
        content, tag = self.files[path], f'"{len(self.files[path]):x}"'
        begin = offset if not etag or etag == tag else 0
        pieces = _pieces(content[begin:], kill_at=self.killed_after.pop(path, -1))
        yield FileBody(offset=begin, size=len(content), etag=tag, pieces=pieces)


async def _pieces(content: bytes, *, kill_at: int) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE):
        if start == kill_at:
            raise Killed
        yield content[start : start + PIECE]


@dataclass(slots=True)
class Steps:
    """Implements Progress: a listing for golden files."""

    lines: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)

    async def started(self, step: str, *, number: int, total: int) -> None:
        self.lines.append(f"{number}/{total} {step}")

    def waiting(self, step: str, missing: str) -> None:
        self.waits.append(f"{step}: {missing}")

    def ended(self, step: str, *, skipped: bool) -> None:
        if skipped:
            self.lines.append(f"skipped {step}")


@dataclass(slots=True, kw_only=True)
class ToolkitWorld:
    """Everything that a command works on."""

    simulation: Simulation
    client: Client
    tree: HostTree
    programs: SimulatedPrograms
    helm: SimulatedHelm
    #: The temporary folder of the commands.
    folder: Path
    iso: IsoFiles
    #: Where the ISO is mounted, for `node checksums`.
    iso_dir: Path
    #: Of the ISO's files, for other commands.
    checksums: Checksums = field(default_factory=lambda: Checksums({}))
    #: Termination messages of success.
    reports: list[str] = field(default_factory=list)
    steps: Steps = field(default_factory=Steps)

    def context(self, **changes: Any) -> ToolkitContext:
        """Return the context of one run of a command."""
        release, uid = ReleaseFiles(self.iso, checksums=self.checksums), changes.get("plan_uid", "")
        fields: dict[str, Any] = {
            "plan": PLAN,
            "node": NODE,
            "pod": POD,
            "shutdown": False,
            "client": self.client,
            "tree": self.tree,
            "programs": self.programs,
            "helm": Helm(self.helm, environment={}),
            "folder": self.folder,
            "now": virtual_now,
            "random": Random(1),
            "files": self.iso,
            "checksums": self.checksums,
            "iso": self.iso_dir,
            "report": self.reports.append,
            "release": release,
            "charts": ChartFiles(changes.get("client", self.client), release),
            "migration": Migration(self.client, release, plan=PLAN, plan_uid=uid),
            "events": PlanEvents(self.client, PLAN, plan_uid=uid, now=virtual_now, random=Random(1)),
        }
        return ToolkitContext(**(fields | changes))

    async def run(self, command: str, *, poll: float | None = None, **changes: Any) -> None:
        """Run a command once; a longer interval between checks makes a long wait cheap. Raises StepFailed."""
        steps = steps_of(command) if poll is None else [replace(step, poll=poll) for step in steps_of(command)]
        await run_steps(steps, self.context(**changes), self.steps)


@asynccontextmanager
async def toolkit_world(
    folder: Path,
    files: dict[str, bytes] | None = None,
    *,
    scenario: str | Scenario = "one-node",
    actors: bool = False,
    simulate: Simulate = embedded,
) -> AsyncIterator[ToolkitWorld]:
    """Create the world in a test's folder: a simulated cluster with the plan, without a manager.

    With `actors` its other controllers run: KubeVirt, Longhorn, Rancher.
    """
    root, temporary = folder / "host", folder / "tmp"
    root.mkdir(parents=True)
    temporary.mkdir()
    async with simulate(scenario, actors=actors, scale=0.1) as simulation:
        client = simulation.client("toolkit")
        await client.create(UPGRADE_PLANS, manifest(PLAN))
        metadata = {"releaseMetadata": {"harvester": simulation.scenario.release.harvester}}
        await client.patch(UPGRADE_PLANS, PLAN, MergePatch({"status": metadata}), subresource="status")
        yield ToolkitWorld(
            simulation=simulation,
            client=client,
            tree=HostTree(root),
            programs=SimulatedPrograms(root, folder / "state.json"),
            helm=SimulatedHelm(client),
            folder=temporary,
            iso=IsoFiles(files or {}),
            iso_dir=folder / "iso",
        )
