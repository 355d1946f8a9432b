"""The actors of a simulated cluster and their wiring."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hack.actors.addons import AddonController
from hack.actors.charts import ChartController
from hack.actors.deployments import DeploymentController
from hack.actors.disruption import DisruptionController
from hack.actors.drainer import Drainer
from hack.actors.endpoint_slices import EndpointSliceController
from hack.actors.evacuation import EvacuationController
from hack.actors.fleet import Fleet
from hack.actors.harvester import Harvester
from hack.actors.images import ImageController
from hack.actors.jobs import JobController
from hack.actors.kubelet import Kubelet
from hack.actors.kubelet_stats import CONFIGURATION, STATS, KubeletStats
from hack.actors.kubevirt import KubeVirtDeployment
from hack.actors.longhorn import LonghornManager
from hack.actors.machines import MachineController
from hack.actors.migrations import MigrationController
from hack.actors.node_down import NodeDown
from hack.actors.nodes import NodeKeeper
from hack.actors.plan_secrets import PlanSecrets
from hack.actors.planner import Planner
from hack.actors.pod_gc import PodCollector
from hack.actors.pod_logs import LOGS, PodLogs
from hack.actors.processes import ProcessController
from hack.actors.rancher import Rancher
from hack.actors.repository import Repository
from hack.actors.scheduler import Scheduler
from hack.actors.servers import SimulatedServers
from hack.actors.switch import FreezerSwitch
from hack.actors.system_agent import SystemAgent
from hack.actors.toolkit import Toolkit
from hack.actors.upgrade_controller import UpgradeController
from hack.actors.virt_api import VirtApi
from hack.actors.virtual_machines import VirtualMachineController
from hack.actors.vm_orders import HEALTH_PATH, PATH, VirtualMachineOrders
from hack.actors.volumes import VolumeController
from hack.actors.workload_updates import WorkloadUpdater

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from hack.actors.context import Actor, ActorContext
    from hack.actors.kubelet import Containers
    from hack.actors.servers import Servers
    from hack.apiserver.handlers import Handlers

    #: Makes the containers of the toolkit from their context and the simulated ones.
    ContainersFactory: TypeAlias = Callable[[ActorContext, Toolkit], Containers]
    #: Makes the containers that serve from the kubelets' context.
    ServersFactory: TypeAlias = Callable[[ActorContext], Servers]


#: The controllers of kube-controller-manager.
_KUBERNETES = (DeploymentController, EndpointSliceController, JobController, DisruptionController)
#: KubeVirt's controllers, and Fleet's deployment of KubeVirt.
_KUBEVIRT = (
    EvacuationController,
    MigrationController,
    VirtualMachineController,
    KubeVirtDeployment,
    WorkloadUpdater,
)
#: Actors of other projects that the real API server and controllers need, and the simulated ones do not.
_WITH_REAL_ONES = (VirtApi, VolumeController)
#: Further actors that a backend with the real controllers does not need.
_REPLACED = (Scheduler, UpgradeController)


class ActorRegistry:
    """All actors of one cluster.

    `controllers` enables the actors of kube-controller-manager, kube-scheduler and the system-upgrade-controller,
    which a backend with the real ones does not need; that one needs others instead. `containers` makes those of Jobs
    and SUC Plans, and `servers` replaces those of Deployments.
    """

    def __init__(
        self,
        context: ActorContext,
        *,
        controllers: bool = True,
        containers: ContainersFactory,
        servers: ServersFactory = SimulatedServers,
    ) -> None:
        self._context = context
        self.repository = Repository(context.for_actor("repository"))
        toolkit = containers(context.for_actor("containers"), Toolkit(context.for_actor("toolkit"), self.repository))
        self.stats = KubeletStats(context.for_actor("kubelet stats"))
        self._logs = PodLogs(context.for_actor("pod logs"))
        self._orders = VirtualMachineOrders(context.for_actor("vm orders"))
        kubelets = context.for_actor("kubelet")
        self._actors: list[tuple[str, Actor]] = [("kubelet", Kubelet(kubelets, toolkit, servers(kubelets)))]
        kinds: tuple[Callable[[ActorContext], Actor], ...] = (
            Scheduler,
            NodeKeeper,
            ImageController,
            UpgradeController,
            Planner,
            Drainer,
            PlanSecrets,
            SystemAgent,
            MachineController,
            *_KUBEVIRT,
            LonghornManager,
            AddonController,
            ChartController,
            PodCollector,
            ProcessController,
            FreezerSwitch,
        )
        kinds += (Rancher, Fleet, Harvester) if context.scenario.services else ()
        kinds += (NodeDown,) if context.scenario.harvester.node_down else ()
        kinds = (*kinds, *_KUBERNETES) if controllers else _with_real_ones(kinds)
        self._actors += [(kind.__name__, kind(context.for_actor(kind.__name__))) for kind in kinds]

    def answer(self, handlers: Handlers) -> None:
        """Register the paths that kubelets and KubeVirt serve behind the API server."""
        handlers.register(STATS, self.stats.stats)
        handlers.register(CONFIGURATION, self.stats.configuration)
        handlers.register(LOGS, self._logs.log)
        handlers.register(HEALTH_PATH, self._orders.health)
        handlers.register(PATH + "start", self._orders.start, method="PUT")
        handlers.register(PATH + "stop", self._orders.stop, method="PUT")

    async def ready(self) -> None:
        """Wait until all caches are synced."""
        await self._context.caches.synced()

    async def run(self) -> None:
        """Run until cancelled; an error of one actor stops all."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._context.caches.run(), name="caches")
            for name, actor in self._actors:
                group.create_task(actor.run(), name=name)


def _with_real_ones(kinds: tuple[Callable[[ActorContext], Actor], ...]) -> tuple[Callable[[ActorContext], Actor], ...]:
    return (*(kind for kind in kinds if kind not in _REPLACED), *_WITH_REAL_ONES)
