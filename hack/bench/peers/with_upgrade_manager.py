"""The controller with this project's library: informer, work queue, 32 workers.

As upgrade_manager.pipeline.controller and upgrade_manager.cli.run wire it, but with Python's own thresholds of the
cycle collector, as the other controllers have them.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from hack.bench.peers.report import ACCOUNT, GROUP, HOST, KIND, NAMESPACE, PLURAL, PORT, VERSION, WORKERS, Report
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.config import InCluster
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import Resource
from upgrade_manager.runtime.controller import Controller
from upgrade_manager.runtime.manager import Manager, Stage
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.result import Done
from upgrade_manager.runtime.workqueue import ItemExponentialFailureRateLimiter, WorkQueue

if TYPE_CHECKING:
    from upgrade_manager.kube.store import Change

WIDGETS = Resource(group=GROUP, version=VERSION, plural=PLURAL, kind=KIND)


async def main() -> None:
    """Run the manager."""
    report = Report()
    config = await InCluster(host=HOST, port=PORT, folder=ACCOUNT).load()
    async with HttpTransport(config) as transport:
        await run(Client(transport, user_agent="controller", random=Random()), report)


async def run(client: Client, report: Report) -> None:
    """Start the informer, and workers when it has synced."""
    metrics = Metrics(CollectorRegistry())
    limiter = ItemExponentialFailureRateLimiter(base_delay=0.005, max_delay=60.0, jitter=0.1, random=Random())
    queue = WorkQueue(PLURAL, limiter=limiter, metrics=metrics)

    def enqueue(change: Change) -> None:
        queue.add(objects.name(change.obj))

    informer = Informer(client, Selection(resource=WIDGETS), handlers=(enqueue,), random=Random())

    async def reconcile(name: str) -> Done:
        report.handled(name)
        widget = informer.store.get(name, NAMESPACE)
        if widget is None:
            return Done(is_deleted=True)
        value = widget["spec"]["value"]
        if objects.status(widget).get("observed", 0) != value:
            patch = MergePatch({"status": {"observed": value}})
            await client.patch(WIDGETS, name, patch, namespace=NAMESPACE, subresource="status")
        return Done()

    manager = Manager(elector=None)
    manager.add(Stage.CACHES, PLURAL, informer.run, ready=informer.wait_for_sync)
    for number in range(WORKERS):
        controller = Controller(
            f"{PLURAL}-{number}",
            reconcile=reconcile,
            keys=lambda: (),
            is_leader=lambda: True,
            queue=queue,
            random=Random(),
            metrics=metrics,
        )
        manager.add(Stage.LEADER, controller.name, controller.run)
    await manager.run()


if __name__ == "__main__":
    asyncio.run(main())
