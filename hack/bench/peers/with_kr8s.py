"""The controller with kr8s.

kr8s 0.20, "Object API": `new_class`; "Client API": `async for event, object in api.watch(…)`. A watch begins with all
objects and ends with the server's time-out, so it is opened again, for ever, as "Build a simple operator" does with a
list every 15 s; that guide recommends kopf for more. The library has no queue.
"""

from __future__ import annotations

import asyncio
from typing import Any

import kr8s.asyncio
from kr8s.asyncio.objects import new_class

from hack.bench.peers.report import ACCOUNT, GROUP, KIND, NAMESPACE, VERSION, WORKERS, Report

WIDGET = new_class(kind=KIND, version=f"{GROUP}/{VERSION}", namespaced=True)


async def main() -> None:
    """Run until an error."""
    report = Report()
    api = await kr8s.asyncio.api(serviceaccount=str(ACCOUNT), kubeconfig="")
    queue: asyncio.Queue[Any] = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(work(queue, report))
        while True:
            async for _event, widget in api.async_watch(WIDGET, namespace=NAMESPACE):
                queue.put_nowait(widget)


async def work(queue: asyncio.Queue[Any], report: Report) -> None:
    """Reconcile objects of the queue."""
    while True:
        widget = await queue.get()
        report.handled(widget.name)
        value = widget.spec.value
        if widget.raw.get("status", {}).get("observed", 0) != value:
            await widget.patch({"status": {"observed": value}}, subresource="status")


if __name__ == "__main__":
    asyncio.run(main())
