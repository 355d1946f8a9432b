"""Watch events per second of one core, from bytes to an informer's store.

The events are of about 5 kB each, without managedFields. As a program it prints `events_per_second=…` in a process
without other objects.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager
from random import Random
from time import process_time
from typing import TYPE_CHECKING

from hack.bench.catalogue import Figure
from upgrade_manager.cli import gc_tuning
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import PODS
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change
    from upgrade_manager.kube.transport import Stream

#: Bytes of one read, as from aiohttp under load.
_READ = 128 * 1024
_OBJECTS = 1000
_NO_INITIAL_EVENTS = (
    b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":'
    b'{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)


class _Replay:
    """A transport with empty lists, whose watch sends the given data and stays open."""

    status = 200
    headers: Mapping[str, str] = {}  # the protocol's type

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def send(self, request: Request) -> Response:
        """Return an empty list."""
        assert request.method == "GET"  # noqa: S101  # informers only read
        return Response(status=200, body=b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}')

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Open the watch."""
        assert request.method == "GET"  # noqa: S101  # informers only read
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bookmark after no initial events, then the data."""
        yield _NO_INITIAL_EVENTS
        for start in range(0, len(self._data), _READ):
            yield self._data[start : start + _READ]
        await asyncio.Event().wait()


def pod(number: int, version: int) -> Object:
    """Return a running Pod of a Deployment, with the usual size and fields."""
    meta = _metadata(number, version)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _spec(number), "status": _status(number)}


def _metadata(number: int, version: int) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "application-5c9f7d8b6"}
    return {
        "name": f"application-5c9f7d8b6-{number:05d}",
        "generateName": "application-5c9f7d8b6-",
        "namespace": f"team-{number % 10}",
        "uid": f"2f6d0f3a-1111-4222-8333-{number:012d}",
        "resourceVersion": str(version),
        "creationTimestamp": "2025-11-21T09:00:00Z",
        "labels": {"app": "application", "team": f"team-{number % 10}", "pod-template-hash": "5c9f7d8b6"},
        "annotations": _annotations(number),
        "ownerReferences": [
            {**owner, "uid": "9a1b6f1e-0000-4000-8000-00000000000a", "controller": True, "blockOwnerDeletion": True}
        ],
    }


def _annotations(number: int) -> Object:
    network = {"name": "k8s-pod-network", "ips": [f"10.42.1.{number % 250}"], "default": True, "dns": {}}
    return {
        "cni.projectcalico.org/containerID": f"{number:064x}",
        "cni.projectcalico.org/podIP": f"10.42.1.{number % 250}/32",
        "k8s.v1.cni.cncf.io/network-status": json.dumps([network], indent=4),
        "checksum/config": f"{number:064x}",
        "example.org/description": "A description of the application, as users write it into annotations. " * 12,
    }


def _spec(number: int) -> Object:
    tolerations = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    ]
    return {
        "containers": [_container()],
        "nodeName": f"node-{number % 50}",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "serviceAccountName": "application",
        "terminationGracePeriodSeconds": 30,
        "tolerations": tolerations,
        "volumes": _volumes(),
    }


def _container() -> Object:
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    return {
        "name": "main",
        "image": "registry.example.org/team/application:v1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "args": ["--listen=:8080", "--config=/etc/application/config.yaml", "--log-level=info"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": f"SETTING_{index}", "value": f"https://service-{index}.example.org/api"} for index in range(6)
        ],
        "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/application"},
            {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _volumes() -> list[Object]:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    return [
        {"name": "config", "configMap": {"name": "application", "defaultMode": 420}},
        {"name": "token", "projected": {"sources": sources, "defaultMode": 420}},
    ]


def _status(number: int) -> Object:
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    condition = {"status": "True", "lastProbeTime": None, "lastTransitionTime": "2025-11-21T09:00:00Z"}
    container = {
        "name": "main",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": "registry.example.org/team/application:v1.2.3",
        "imageID": f"registry.example.org/team/application@sha256:{7:064x}",
        "containerID": f"containerd://{number:064x}",
        "state": {"running": {"startedAt": "2025-11-21T09:00:00Z"}},
    }
    return {
        "phase": "Running",
        "conditions": [{"type": type_, **condition} for type_ in types],
        "containerStatuses": [container],
        "hostIP": f"10.0.0.{number % 50}",
        "podIP": f"10.42.1.{number % 250}",
        "podIPs": [{"ip": f"10.42.1.{number % 250}"}],
        "qosClass": "Burstable",
        "startTime": "2025-11-21T09:00:00Z",
    }


def _events(count: int) -> bytes:
    """Return the lines of a watch: each object is added once and then modified."""
    lines = []
    for version in range(count):
        kind = "ADDED" if version < _OBJECTS else "MODIFIED"
        lines.append(json.dumps({"type": kind, "object": pod(version % _OBJECTS, version + 2)}, separators=(",", ":")))
    return ("\n".join(lines) + "\n").encode()


async def _rate(events: int) -> tuple[float, int]:
    """Return events per second of processor time, and the bytes of one."""
    data = _events(events)
    seen = 0
    done = asyncio.Event()

    def count(_: Change) -> None:
        nonlocal seen
        seen += 1
        if seen == events:
            done.set()

    client = Client(_Replay(data), user_agent="bench", random=Random(1))
    informer = Informer(client, Selection(resource=PODS), handlers=(count,), random=Random(1))
    began = process_time()
    task = asyncio.create_task(informer.run())
    await done.wait()
    elapsed = process_time() - began
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return events / elapsed, len(data) // events


def measure() -> list[Figure]:
    """Run this module as a program. Raises CalledProcessError."""
    command = [sys.executable, "-m", "hack.bench.informer"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rate = float(output.rpartition("=")[2])
    return [Figure(name="informer, 5 kB objects, one core", value=rate, unit="events/s", target=15000, at_most=False)]


def main() -> None:
    """Print the best of a few runs, because other programs only make it slower."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    # As the manager does at its start.
    gc_tuning.collect_less_often()
    gc_tuning.freeze()
    runs = [asyncio.run(_rate(options.events)) for _ in range(options.runs)]
    print(f"event_bytes={runs[0][1]}")
    print(f"events_per_second={max(rate for rate, _ in runs):.0f}")


if __name__ == "__main__":
    main()
