"""The controller with kubernetes_asyncio's own watch.

kubernetes_asyncio 36, README and examples/watch_namespaces.py: `Watch().stream(list function, …)`, which begins with
all objects. The library has no queue.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kubernetes_asyncio import watch
from kubernetes_asyncio.client import ApiClient, CustomObjectsApi
from kubernetes_asyncio.config import load_incluster_config

from hack.bench.peers.report import ACCOUNT, GROUP, NAMESPACE, PLURAL, VERSION, WORKERS, Report

WHERE = {"group": GROUP, "version": VERSION, "namespace": NAMESPACE, "plural": PLURAL}


async def main() -> None:
    """Run until the watch ends."""
    report = Report()
    load_incluster_config(token_filename=str(ACCOUNT / "token"), cert_filename=str(ACCOUNT / "ca.crt"))
    queue: asyncio.Queue[Any] = asyncio.Queue()
    async with ApiClient() as client, asyncio.TaskGroup() as group:
        api: Any = CustomObjectsApi(client)
        workers = [group.create_task(work(queue, api, report)) for _ in range(WORKERS)]
        async with watch.Watch().stream(api.list_namespaced_custom_object, **WHERE) as stream:
            async for event in stream:
                queue.put_nowait(event["object"])
        for worker in workers:
            worker.cancel()


async def work(queue: asyncio.Queue[Any], api: Any, report: Report) -> None:
    """Reconcile objects of the queue."""
    while True:
        widget = await queue.get()
        name, value = widget["metadata"]["name"], widget["spec"]["value"]
        report.handled(name)
        if widget.get("status", {}).get("observed", 0) != value:
            await api.patch_namespaced_custom_object_status(
                **WHERE,
                name=name,
                body={"status": {"observed": value}},
                _content_type="application/merge-patch+json",
            )


if __name__ == "__main__":
    asyncio.run(main())
