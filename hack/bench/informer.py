"""How many watch events a second one core takes from bytes to an informer's store.

Prints `events_per_second=...`; the events are of about 5 kB each, without the managedFields that the server adds and
the informer drops.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from contextlib import asynccontextmanager
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.kinds import PODS
from upgrade_manager.kube.objects import labels
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change
    from upgrade_manager.kube.transport import Stream

#: Bytes that one read brings, as aiohttp hands them out under load.
_READ = 128 * 1024
_OBJECTS = 1000


class _Replay:
    """A transport whose lists are empty and whose one watch sends what it was given, then stays open."""

    status = 200
    headers: Mapping[str, str] = {}  # noqa: RUF012  # the protocol's type

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def send(self, request: Request) -> Response:
        """An empty list."""
        assert request.method == "GET"  # noqa: S101  # nothing else is asked
        return Response(status=200, body=b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}')

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """The watch."""
        assert request.method == "GET"  # noqa: S101  # nothing else is asked
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        """The data, then silence."""
        for start in range(0, len(self._data), _READ):
            yield self._data[start : start + _READ]
        await asyncio.Event().wait()


def pod(number: int, version: int, *, managed_fields: bool = False) -> Object:
    """A Pod of the size and shape that real ones have."""
    container = {
        "name": "main",
        "image": "registry.example.org/team/application:v1.2.3",
        "env": [{"name": f"SETTING_{index}", "value": f"value of setting {index}"} for index in range(24)],
        "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": f"volume-{index}", "mountPath": f"/data/{index}"} for index in range(6)],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10, "failureThreshold": 3},
    }
    condition = {"status": "True", "lastTransitionTime": "2025-11-21T09:00:00Z", "lastProbeTime": None}
    types = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    meta: dict[str, Any] = {
        "name": f"application-5c9f7d8b6-{number:05d}",
        "namespace": f"team-{number % 10}",
        "uid": f"2f6d0f3a-1111-4222-8333-{number:012d}",
        "resourceVersion": str(version),
        "creationTimestamp": "2025-11-21T09:00:00Z",
        "labels": {"app": "application", "team": f"team-{number % 10}", "pod-template-hash": "5c9f7d8b6"},
        "annotations": {f"example.org/note-{index}": "some text that people attach" for index in range(8)},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "application-5c9f7d8b6"}],
    }
    if managed_fields:
        fields = {f"f:field-{index}": {".": {}, "f:inner": {}} for index in range(60)}
        meta["managedFields"] = [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "containers": [container],
            "nodeName": f"node-{number % 50}",
            "tolerations": [{"key": f"key-{index}", "operator": "Exists"} for index in range(4)],
            "volumes": [{"name": f"volume-{index}", "configMap": {"name": f"config-{index}"}} for index in range(6)],
        },
        "status": {"phase": "Running", "conditions": [{"type": type_, **condition} for type_ in types]},
    }


async def measure(events: int) -> tuple[float, int]:
    """Events a second of processor time, and the size of one in bytes."""
    lines = []
    for version in range(events):
        kind = "ADDED" if version < _OBJECTS else "MODIFIED"
        lines.append(json.dumps({"type": kind, "object": pod(version % _OBJECTS, version + 2)}, separators=(",", ":")))
    data = ("\n".join(lines) + "\n").encode()
    seen: list[int] = []
    done = asyncio.Event()

    def count(_: Change) -> None:
        seen.append(1)
        if len(seen) == events:
            done.set()

    random = Random(1)
    informer = Informer(
        Client(_Replay(data), user_agent="bench", random=random),
        PODS,
        indexers={"team": lambda obj: [labels(obj)["team"]]},
        handlers=(count,),
        random=random,
    )
    started = process_time()
    task = asyncio.create_task(informer.run())
    await done.wait()
    elapsed = process_time() - started
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return events / elapsed, len(data) // events


def main() -> None:
    """Print the best of a few runs: what the code can do when nobody else wants the core."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    runs = [asyncio.run(measure(options.events)) for _ in range(options.runs)]
    print(f"event_bytes={runs[0][1]}")
    print(f"events_per_second={max(rate for rate, _ in runs):.0f}")


if __name__ == "__main__":
    main()
