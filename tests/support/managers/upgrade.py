"""Whole upgrades in a test: the simulated cluster and managers that a test may kill."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from hack.cluster.embedded_backend import EmbeddedBackend
from hack.cluster.impersonation import ActingAs
from hack.faults.forwarding import Forwarding
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import is_collected, lasting, stored
from tests.support.managers.manager_policies import install, manager_policies
from tests.support.managers.manager_process import ManagerProcess
from tests.support.managers.skewed_clock import SkewedClock
from tests.support.programs.polling import eventually
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, PHASES, SUCCEEDED, TERMINAL
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import AlreadyExists, NotFound, Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS, PROVISIONING_CLUSTERS, UPGRADE_PLANS, Resource
from upgrade_manager.kube.transport import Request, Response, Transport
from upgrade_manager.pipeline.controller import COMPONENT
from upgrade_manager.preflight.kubelets import DirectKubelets
from upgrade_manager.release.repository_client import RepositoryClient

PLAN = "upgrade"
BY_VERSION: dict[str, Any] = {"version": "v1.8.0"}
BY_IMAGE: dict[str, Any] = {"image": "harvester-v1.8.0"}
#: Both ways to name the release, as parameters.
ENTRIES = [pytest.param(BY_VERSION, id="by-version"), pytest.param(BY_IMAGE, id="by-image")]
#: The same, the second in the full tier only.
SPECS = [ENTRIES[0], pytest.param(BY_IMAGE, id="by-image", marks=pytest.mark.full)]
#: Seconds between two polls of the plan, and until an upgrade counts as stuck; virtual and real.
LOOK, STUCK = 0.25, 3600.0
#: For states of the plan that last a second.
SHORT_LOOK = 0.1
REAL_LOOK, REAL_STUCK = 0.02, 240.0
#: For phases that last, so that the test takes no time from the cluster.
REAL_LASTING_LOOK = 0.1
_LASTING = {*TERMINAL, "deleted"}
#: Seconds until the cluster has settled after an end; in real time, without a change.
FAREWELL, REAL_FAREWELL = 10.0, 1.5
#: Response of the webhook of `UpgradeRun.refuse`.
REFUSAL = "a webhook refuses it"
_CREATED = 201
_DEFAULTS = RunOptions()
RBAC = Path(__file__).parents[3] / "deploy" / "rbac"
ACCOUNT = "system:serviceaccount:harvester-system:harvester-upgrade-manager"


def _rbac_kind(kind: str) -> Resource:
    group, plural = "rbac.authorization.k8s.io", f"{kind.lower()}s"
    return Resource(group=group, version="v1", plural=plural, kind=kind, namespaced=not kind.startswith("Cluster"))


@cache
def rights() -> list[tuple[Resource, Object]]:
    """Return the RBAC manifests of `kubectl apply -k deploy`."""
    manifests = [one for path in sorted(RBAC.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]
    return [(_rbac_kind(one["kind"]), one) for one in manifests if one["apiVersion"].startswith("rbac.")]


class Ledger(Forwarding):
    """A transport that records what all managers created."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        #: Path and name of every created object.
        self.created: list[tuple[str, str]] = []
        #: Requests with status 409; a healthy run has none.
        self.conflicts: list[str] = []
        self.writes: list[Request] = []

    async def send(self, request: Request) -> Response:
        if request.method != "GET":
            self.writes.append(request)
        answer = await self._inner.send(request)
        if request.method == "POST" and answer.status == _CREATED:
            self.created.append((request.path, objects.name(json.loads(answer.body))))
        if answer.status == 409:
            self.conflicts.append(f"{request.method} {request.path}")
        return answer

    def names(self, plural: str) -> list[str]:
        """Return the names of the created objects of a kind."""
        return [name for path, name in self.created if path.endswith(f"/{plural}")]


@dataclass(kw_only=True)
class UpgradeRun:
    """A running simulation with a plan and managers that have the permissions of deploy/rbac.

    On the real API server they are under the policies of deploy/admission-policies, too.
    """

    simulation: Simulation
    name: str
    ledger: Ledger
    #: The managers' client of the upgrade repository.
    repository: RepositoryClient
    #: The managers' options.
    options: RunOptions = field(default_factory=RunOptions)
    #: Seconds by which the managers' clocks are ahead of the API server's.
    skew: float = 0.0

    @classmethod
    async def set_up(cls, simulation: Simulation, *, name: str = PLAN) -> Self:
        """Install the manager's RBAC objects and policies."""
        client = simulation.client()
        for resource, manifest in rights():
            with contextlib.suppress(AlreadyExists):
                await client.create(resource, manifest)
        if simulation.backend.has_controllers:
            await install(simulation.transport(), account=ACCOUNT, manifests=manager_policies())
        ledger = Ledger(ActingAs(simulation.transport(), user=ACCOUNT))
        return cls(simulation=simulation, name=name, ledger=ledger, repository=simulation.repository)

    @classmethod
    async def abandoned(cls, simulation: Simulation, point: str, *, node: str = "") -> Self:
        """Kill the manager when its plan has reached that phase value or node state."""
        stage = await cls.set_up(simulation)
        async with stage.life() as life:
            await stage.create_plan()
            await stage.reach(point, node=node)
            await life.kill()
        return stage

    def life(self, *, die_at: int = 0, after: bool = False, lose_at: int = 0, seed: str = "manager") -> ManagerProcess:
        """Return a manager process; see `InterruptibleTransport`."""
        return ManagerProcess(
            transport=self.ledger,
            repository=self.repository,
            certificates=self.simulation.certificates,
            kubelets=DirectKubelets(self.simulation.kubelets),
            clock=SkewedClock(self.simulation, seconds=self.skew),
            die_at=die_at,
            after=after,
            lose_at=lose_at,
            seed=seed,
            options=self.options,
        )

    @cached_property
    def client(self) -> Client:
        """Return the user's client."""
        return self.simulation.client()

    async def create_plan(self, spec: dict[str, Any] = BY_VERSION, **metadata: Any) -> Object:
        """Create the plan as a user does."""
        head = {"apiVersion": UPGRADE_PLANS.api_version, "kind": UPGRADE_PLANS.kind}
        return await self.simulation.apply({**head, "metadata": {"name": self.name, **metadata}, "spec": spec})

    async def plan(self) -> Object:
        return await self.client.get(UPGRADE_PLANS, self.name)

    async def polled(self) -> Object:
        """Return the plan for a condition, which must not change it. Raises NotFound and Transient.

        The embedded server's storage is read while requests pass: else, half of those of a random run would be polls.
        """
        backend = self.simulation.backend
        if isinstance(backend, EmbeddedBackend) and backend.line.is_passable:
            state = backend.server.storage.get(UPGRADE_PLANS.name, ("", self.name))
            if state is not None:
                return state.object
        return await self.plan()

    async def patch(self, **fields: Any) -> None:
        """Patch the plan as a user does."""
        await self.client.patch(UPGRADE_PLANS, self.name, MergePatch(fields))

    async def delete(self, propagation: str = "Background") -> None:
        """Delete the plan, and wait until its objects are removed."""
        await self.client.delete(UPGRADE_PLANS, self.name, propagation=propagation)
        assert await self.until("deleted") == "deleted"
        await self.settle()

    async def succeed(self) -> Object:
        """Check that the upgrade succeeds with every phase recorded, and return the plan after cleanup."""
        assert await self.until_ended() == SUCCEEDED
        await self.settle()
        plan = await self.plan()
        assert phases_of(plan) == [*PHASE_VALUES, SUCCEEDED]
        return plan

    async def fail(self) -> Object:
        """Check that the upgrade fails, and return the plan after cleanup."""
        assert await self.until_ended() == FAILED
        await self.settle()
        return await self.plan()

    async def phase(self) -> str:
        """Return the plan's current phase, "deleted", or "unknown" while the API server is unavailable."""
        try:
            return str(objects.status(await self.polled()).get("currentPhase") or "")
        except NotFound:
            return "deleted"
        except Transient:
            return "unknown"

    async def until(self, *phases: str, died: asyncio.Event | None = None) -> str:
        """Wait until the plan is in one of the phases, or the manager has died. Raises TimeoutError."""
        is_real = self.simulation.backend.has_controllers
        pause = LOOK if not is_real else REAL_LASTING_LOOK if _LASTING.issuperset(phases) else REAL_LOOK
        async with asyncio.timeout(REAL_STUCK if is_real else STUCK):
            while True:
                phase = await self.phase()
                if phase in phases or (died is not None and died.is_set()):
                    return phase
                await asyncio.sleep(pause)

    async def until_ended(self, *, died: asyncio.Event | None = None) -> str:
        """Wait for the end."""
        return await self.until(*TERMINAL, died=died)

    async def until_plan(self, is_so: Callable[[Object], bool], *, seconds: float = 600.0) -> Object:
        """Wait until the plan fulfils a condition, and return it. Raises TimeoutError."""

        async def poll() -> Object | None:
            plan = await self.polled()
            return plan if is_so(plan) else None

        pause = REAL_LOOK if self.simulation.backend.has_controllers else SHORT_LOOK
        found: Object = await eventually(poll, seconds=seconds, pause=pause)
        return copy.deepcopy(found)

    async def until_recorded(self, phase: str) -> None:
        """Wait until the plan has recorded the phase. Raises TimeoutError."""
        await self.until_plan(lambda plan: phase in phases_of(plan))

    async def until_node(self, state: str, *, node: str = "") -> None:
        """Wait until the node, or any, is in the state. Raises TimeoutError."""
        await self.until_recorded("NodeUpgrading")

        def is_there(plan: Object) -> bool:
            return state in [found for name, found in node_states(plan).items() if node in {"", name}]

        await self.until_plan(is_there)

    async def reach(self, point: str, *, node: str = "") -> None:
        """Wait until the plan has recorded a phase value, or the node, or any, is in a state. Raises TimeoutError."""
        await (self.until_recorded(point) if point in PHASE_VALUES else self.until_node(point, node=node))

    async def until_decided(self) -> None:
        """Wait until the plan is accepted or queued. Raises TimeoutError."""
        await self.until_plan(lambda plan: condition(plan, "Available")[1] not in {"", "Waiting"})

    async def settle(self) -> None:
        """Wait until cleanup and garbage collection are done."""
        if not self.simulation.backend.has_controllers:
            await asyncio.sleep(FAREWELL)
            return
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(REAL_STUCK):
            state, since = await self._collected(), clock()
            while clock() - since < REAL_FAREWELL:
                await asyncio.sleep(REAL_FAREWELL / 3)
                now = await self._collected()
                if now != state or now is None:
                    state, since = now, clock()

    async def _collected(self) -> dict[str, Any] | None:
        """Return the lasting objects; None while garbage is there, a plan cleans up, or the API server reboots."""
        try:
            found = await stored(self.simulation)
        except Transient:
            return None
        is_settled = is_collected(found) and not any(objects.status(obj).get("cleanupPending") for obj in found)
        return lasting(found) if is_settled else None

    async def patch_cluster(self, **members: Any) -> None:
        """Merge members into the rkeConfig of Rancher's cluster, as a user does."""
        patch = MergePatch({"spec": {"rkeConfig": members}})
        await self.client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")

    async def plan_again(self) -> None:
        """Let Rancher plan, and drain, all nodes again."""
        await self.patch_cluster(provisionGeneration=await provision_generation(self.simulation) + 1)

    def refuse(self, verb: str, resource: str, *, status: int = 403, reason: str = "Forbidden") -> Callable[[], None]:
        """Let a webhook refuse these requests with the message REFUSAL, until the returned function is called."""
        action = Refuse(status=status, reason=reason, message=REFUSAL)
        rule = Rule(match=Match(verbs=(verb,), resource=resource), action=action)
        self.simulation.middleware.add(rule)
        return partial(self.simulation.middleware.remove, rule)

    async def events(self, reason: str = "") -> list[Object]:
        """Return the manager's events about the plan, or all with that reason, oldest first."""
        found = (await self.client.list(EVENTS)).items
        about = [event for event in found if event["involvedObject"].get("name") == self.name]
        ordered = sorted(about, key=lambda event: int(objects.metadata(event)["resourceVersion"]))
        return [event for event in ordered if event["reason"] == reason or (not reason and _is_of_manager(event))]

    async def warnings(self) -> list[tuple[str, str]]:
        """Return reason and message of the plan's Warning events."""
        return [(event["reason"], event["message"]) for event in await self.events() if event["type"] == "Warning"]


@contextlib.asynccontextmanager
async def started(
    simulation: Simulation,
    spec: dict[str, Any] = BY_VERSION,
    *,
    name: str = PLAN,
    options: RunOptions = _DEFAULTS,
    **metadata: Any,
) -> AsyncIterator[UpgradeRun]:
    """Run a manager with these options, and create the plan."""
    stage = await UpgradeRun.set_up(simulation, name=name)
    stage.options = options
    async with stage.life():
        await stage.create_plan(spec, **metadata)
        yield stage


async def provision_generation(simulation: Simulation) -> int:
    """Return the provisionGeneration of the Rancher cluster."""
    local = await simulation.client().get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    return int(objects.spec(local)["rkeConfig"].get("provisionGeneration") or 0)


def phases_of(plan: Object) -> list[str]:
    """Return the recorded phase values, in order."""
    return [entry["phase"] for entry in objects.status(plan).get("phaseTransitionTimestamps") or []]


def seconds_of_phases(plan: Object) -> dict[str, float]:
    """Return the duration of each phase that has ended."""
    entries = objects.status(plan)["phaseTransitionTimestamps"]
    times = {entry["phase"]: datetime.fromisoformat(entry["phaseTransitionTimestamp"]) for entry in entries}
    return {
        str(phase): (times[phase.completed] - times[phase.active]).total_seconds()
        for phase in PHASES
        if {phase.active, phase.completed} <= times.keys()
    }


def node_states(plan: Object) -> dict[str, str]:
    """Return the state of each node."""
    return {name: entry["state"] for name, entry in (objects.status(plan).get("nodeUpgradeStatuses") or {}).items()}


def condition(plan: Object, type_: str) -> tuple[str, str, str]:
    """Return status, reason and message."""
    found = objects.condition(plan, type_)
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def _is_of_manager(event: Object) -> bool:
    """Return False for an event of a Job's command."""
    return str((event.get("source") or {}).get("component")) == COMPONENT
