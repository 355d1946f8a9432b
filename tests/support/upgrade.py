"""Whole upgrades in a test: the simulated cluster and managers that a test may kill."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml

from hack.cluster.impersonation import ActingAs
from tests.support.cluster_state import is_collected, lasting, stored
from tests.support.manager_process import ManagerProcess
from tests.support.polling import eventually
from upgrade_manager.api.phases import TERMINAL
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, NotFound, Transient
from upgrade_manager.kube.resources import EVENTS, PROVISIONING_CLUSTERS, UPGRADE_PLANS, Resource

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime

    from hack.simulation import Simulation
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request, Response, Stream, Transport
    from upgrade_manager.pipeline.repository_client import RepositoryClient

PLAN = "upgrade"
BY_VERSION: dict[str, Any] = {"version": "v1.8.0"}
BY_IMAGE: dict[str, Any] = {"image": "harvester-v1.8.0"}
#: Seconds between two polls of the plan, and until an upgrade counts as stuck; virtual and real.
LOOK, STUCK = 0.25, 3600.0
REAL_LOOK, REAL_STUCK = 0.02, 240.0
#: Seconds until the cluster has settled after an end; in real time, without a change.
FAREWELL, REAL_FAREWELL = 10.0, 1.5
_CREATED = 201
RBAC = Path(__file__).parents[2] / "deploy" / "rbac"
ACCOUNT = "system:serviceaccount:harvester-system:harvester-upgrade-manager"
_RBAC_KINDS = {
    kind: Resource(
        group="rbac.authorization.k8s.io",
        version="v1",
        plural=f"{kind.lower()}s",
        kind=kind,
        namespaced=not kind.startswith("Cluster"),
    )
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
}


@dataclass(frozen=True, slots=True)
class SimulatedClock:
    """The simulation's time as the manager's clock."""

    simulation: Simulation

    def now(self) -> datetime:
        """Return the virtual wall time."""
        return self.simulation.now()

    def monotonic(self) -> float:
        """Return the loop's time."""
        return asyncio.get_running_loop().time()


@cache
def _rights() -> tuple[tuple[Resource, Object], ...]:
    """Return the RBAC manifests of `kubectl apply -k deploy`."""
    texts = [path.read_text() for path in sorted(RBAC.glob("*.yaml"))]
    manifests = [manifest for text in texts for manifest in yaml.safe_load_all(text)]
    return tuple((_RBAC_KINDS[m["kind"]], m) for m in manifests if m["kind"] in _RBAC_KINDS)


class Ledger:
    """A transport that records what all managers created."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        #: Path and name of every created object.
        self.created: list[tuple[str, str]] = []
        #: Requests with status 409; a healthy run has none.
        self.conflicts: list[str] = []

    async def send(self, request: Request) -> Response:
        """Forward and record it."""
        answer = await self._inner.send(request)
        if request.method == "POST" and answer.status == _CREATED:
            self.created.append((request.path, objects.name(json.loads(answer.body))))
        if answer.status == 409:
            self.conflicts.append(f"{request.method} {request.path}")
        return answer

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Forward it."""
        return self._inner.open(request)


@dataclass(kw_only=True)
class UpgradeRun:
    """A running simulation with a plan and managers that have the permissions of deploy/rbac."""

    simulation: Simulation
    name: str
    ledger: Ledger
    #: The managers' client of the upgrade repository.
    repository: RepositoryClient
    #: The managers' options.
    options: RunOptions = field(default_factory=RunOptions)

    @classmethod
    async def set_up(cls, simulation: Simulation, *, name: str = PLAN) -> Self:
        """Install the manager's RBAC objects."""
        client = simulation.client()
        for resource, manifest in _rights():
            with contextlib.suppress(AlreadyExists):
                await client.create(resource, manifest)
        ledger = Ledger(ActingAs(simulation.transport(), user=ACCOUNT))
        return cls(simulation=simulation, name=name, ledger=ledger, repository=simulation.repository)

    def life(self, *, die_at: int = 0, after: bool = False, lose_at: int = 0, seed: str = "manager") -> ManagerProcess:
        """Return a manager process; see `InterruptibleTransport`."""
        return ManagerProcess(
            transport=self.ledger,
            repository=self.repository,
            certificates=self.simulation.certificates,
            clock=SimulatedClock(self.simulation),
            die_at=die_at,
            after=after,
            lose_at=lose_at,
            seed=seed,
            options=self.options,
        )

    async def create_plan(self, spec: dict[str, Any], **metadata: Any) -> Object:
        """Create the plan as a user does."""
        return await self.simulation.apply(
            {
                "apiVersion": UPGRADE_PLANS.api_version,
                "kind": UPGRADE_PLANS.kind,
                "metadata": {"name": self.name, **metadata},
                "spec": spec,
            }
        )

    async def plan(self) -> Object:
        """Return the plan."""
        return await self.simulation.client().get(UPGRADE_PLANS, self.name)

    async def phase(self) -> str:
        """Return the plan's current phase, "deleted", or "unknown" while the API server is unavailable."""
        try:
            return str(objects.status(await self.plan()).get("currentPhase") or "")
        except NotFound:
            return "deleted"
        except Transient:
            return "unknown"

    async def until(self, *phases: str, died: asyncio.Event | None = None) -> str:
        """Wait until the plan is in one of the phases, or the manager has died. Raises TimeoutError."""
        is_real = self.simulation.backend.has_controllers
        async with asyncio.timeout(REAL_STUCK if is_real else STUCK):
            while True:
                phase = await self.phase()
                if phase in phases or (died is not None and died.is_set()):
                    return phase
                await asyncio.sleep(REAL_LOOK if is_real else LOOK)

    async def until_ended(self, *, died: asyncio.Event | None = None) -> str:
        """Wait for the end."""
        return await self.until(*TERMINAL, died=died)

    async def until_plan(self, is_so: Callable[[Object], bool], *, seconds: float = 600.0) -> Object:
        """Wait until the plan fulfils a condition, and return it. Raises TimeoutError."""

        async def poll() -> Object | None:
            plan = await self.plan()
            return plan if is_so(plan) else None

        found: Object = await eventually(poll, seconds=seconds, pause=REAL_LOOK)
        return found

    async def until_recorded(self, phase: str) -> None:
        """Wait until the plan has recorded the phase. Raises TimeoutError."""
        await self.until_plan(lambda plan: phase in phases_of(plan))

    async def until_node(self, state: str, *, node: str = "") -> None:
        """Wait until the node, or any, is in the state. Raises TimeoutError."""
        await self.until_recorded("NodeUpgrading")

        def is_there(plan: Object) -> bool:
            nodes = objects.status(plan).get("nodeUpgradeStatuses") or {}
            return state in [entry["state"] for name, entry in nodes.items() if node in {"", name}]

        await self.until_plan(is_there)

    async def until_said(self, type_: str) -> None:
        """Wait until the plan has that condition. Raises TimeoutError."""
        await self.until_plan(lambda plan: objects.condition(plan, type_) is not None)

    async def settle(self) -> None:
        """Wait until cleanup and garbage collection are done."""
        if not self.simulation.backend.has_controllers:
            await asyncio.sleep(FAREWELL)
            return
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(REAL_STUCK):
            state, since = lasting(await stored(self.simulation)), clock()
            while clock() - since < REAL_FAREWELL:
                await asyncio.sleep(REAL_FAREWELL / 10)
                found = await stored(self.simulation)
                now = lasting(found)
                if now != state or not is_collected(found):
                    state, since = now, clock()

    async def events(self, reason: str = "") -> list[Object]:
        """Return the plan's events, oldest first."""
        found = (await self.simulation.client().list(EVENTS)).items
        about = [event for event in found if event["involvedObject"].get("name") == self.name]
        ordered = sorted(about, key=lambda event: int(objects.metadata(event)["resourceVersion"]))
        return [event for event in ordered if reason in {"", event["reason"]}]


async def provision_generation(simulation: Simulation) -> int:
    """Return the provisionGeneration of the Rancher cluster."""
    local = await simulation.client().get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    found: int = objects.spec(local)["rkeConfig"]["provisionGeneration"]
    return found


def phases_of(plan: Object) -> list[str]:
    """Return the recorded phase values, in order."""
    return [entry["phase"] for entry in objects.status(plan).get("phaseTransitionTimestamps") or []]


def condition(plan: Object, type_: str) -> tuple[str, str, str]:
    """Return status, reason and message."""
    found = objects.condition(plan, type_) or {}
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")
