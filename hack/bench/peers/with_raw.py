"""The controller by hand, with aiohttp and orjson: no cache, no retry, no error handled. The floor for the others.

aiohttp 3.14, "Client Quickstart": one session, and `response.content` for streams.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
import orjson

from hack.bench.peers.report import ACCOUNT, GROUP, HOST, NAMESPACE, PLURAL, PORT, VERSION, WORKERS, Report

PATH = f"https://{HOST}:{PORT}/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}"


async def main() -> None:
    """Run until the watch ends."""
    report = Report()
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"}
    tls = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ACCOUNT / "ca.crt"))
    forever = aiohttp.ClientTimeout(total=None)
    queue: asyncio.Queue[Any] = asyncio.Queue()
    async with (
        aiohttp.ClientSession(headers=headers, connector=tls, timeout=forever) as http,
        asyncio.TaskGroup() as group,
        http.get(PATH, params={"watch": "true"}) as response,
    ):
        workers = [group.create_task(work(queue, http, report)) for _ in range(WORKERS)]
        async for line in response.content:
            queue.put_nowait(orjson.loads(line)["object"])
        for worker in workers:
            worker.cancel()


async def work(queue: asyncio.Queue[Any], http: aiohttp.ClientSession, report: Report) -> None:
    """Reconcile objects of the queue."""
    while True:
        widget = await queue.get()
        name, value = widget["metadata"]["name"], widget["spec"]["value"]
        report.handled(name)
        if widget.get("status", {}).get("observed", 0) != value:
            body = orjson.dumps({"status": {"observed": value}})
            url = f"{PATH}/{name}/status"
            async with http.patch(url, data=body, headers={"Content-Type": "application/merge-patch+json"}) as response:
                await response.read()


if __name__ == "__main__":
    asyncio.run(main())
