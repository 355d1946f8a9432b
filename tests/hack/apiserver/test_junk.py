"""Whatever is sent, the server answers, and its own controllers go on."""

from __future__ import annotations

import asyncio
import copy
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.definitions import DEFINITIONS, WIDGETS, definition, widget

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from tests.support.wire import Wire

CORE = "/api/v1/namespaces/default"
POD_SPEC = {
    "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1}], "env": [{"name": "a", "value": "b"}]}],
    "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
    "restartPolicy": "Never",
}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
BODIES: dict[str, dict[str, Any]] = {
    f"{CORE}/configmaps": {
        "metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"], "ownerReferences": [OWNER], "resourceVersion": "5"},
        "data": {"a": "b"},
    },
    f"{CORE}/secrets": {"stringData": {"a": "b"}, "data": {"c": "eA=="}},
    f"{CORE}/pods": {"spec": POD_SPEC, "status": {"phase": "Running"}},
    f"{CORE}/services": {"spec": {"ports": [{"port": 80}]}},
    f"{CORE}/events": {"involvedObject": {"kind": "Node", "namespace": "default"}, "source": {"component": "c"}},
    "/apis/batch/v1/namespaces/default/jobs": {"spec": {"template": {"metadata": {}, "spec": POD_SPEC}}},
    "/api/v1/namespaces": {"spec": {"finalizers": ["kubernetes"]}},
    WIDGETS: widget("a", size=1) | {"status": {"a": 1}},
    DEFINITIONS: definition("things", "Thing", namespaced=True, status=True),
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {
        "webhooks": [
            {
                "name": "x.y.z",
                "clientConfig": {"url": "https://x"},
                "rules": [{"apiGroups": ["no"], "apiVersions": ["*"], "operations": ["*"], "resources": ["x"]}],
                "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            }
        ]
    },
}
JUNK: list[Any] = [None, 0, -1, 1.5, True, "", "x", "a b", [], [1], [None], {}, {"a": 1}, [{}]]


def spoilt(body: dict[str, Any], random: Random) -> dict[str, Any]:
    """The body with one value, wherever it is, replaced or gone."""
    body = copy.deepcopy(body)
    around: Any = body
    while True:
        keys: list[Any] = list(around) if isinstance(around, dict) else list(range(len(around)))
        key = random.choice(keys)
        if not isinstance(around[key], dict | list) or not around[key] or random.random() < 0.25:
            break
        around = around[key]
    around[key] = copy.deepcopy(random.choice(JUNK))
    return body


async def send(wire: Wire, random: Random) -> int:
    path = random.choice(list(BODIES))
    named = copy.deepcopy(BODIES[path])
    name = named.setdefault("metadata", {}).setdefault("name", "a")
    body = spoilt(named, random)
    how = random.choice(("create", "create", "update", "merge", "strategic", "status", "delete"))
    if how == "create":
        return (await wire.post(path, body)).status
    if how == "update":
        return (await wire.put(f"{path}/{name}", body)).status
    if how == "status":
        return (await wire.patch(f"{path}/{name}/status", {"status": random.choice(JUNK)})).status
    if how == "delete":
        return (await wire.delete(f"{path}/{name}", {"preconditions": random.choice(JUNK)})).status
    return (await wire.patch(f"{path}/{name}", body, kind=how)).status


@pytest.mark.parametrize("seed", range(4))
async def test_junk_is_answered(server: ApiServer, wire: Wire, seed: int) -> None:
    random = Random(seed)
    running = asyncio.create_task(server.run())
    statuses = set()
    for _ in range(400):
        statuses.add(await send(wire, random))
        await asyncio.sleep(0)
    await asyncio.sleep(5)
    assert not running.done()
    assert {200, 201, 400, 422} <= statuses
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
