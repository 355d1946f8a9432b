"""Memory that an object takes in a store."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from random import Random

import pytest

from hack.bench.informer import pod
from tests.support.server.kube_server import ScriptedTransport, listing, node
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.decoder import decode_lines
from upgrade_manager.kube.informer import without_managed_fields
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.pager import ListOptions, Selection
from upgrade_manager.kube.resources import NODES

#: Events in one read.
READ = 25
READS = 20


def whole(number: int) -> Object:
    obj = pod(number, number)
    obj["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {f"f:{index}": {} for index in range(50)}}]
    return obj


def only_metadata(number: int) -> Object:
    return {"apiVersion": "v1", "kind": "PartialObjectMetadata", "metadata": pod(number, number)["metadata"]}


@pytest.mark.parametrize(
    ("make", "limit"), [(whole, 20_000), (only_metadata, 5_000)], ids=["a Pod of 5 kB", "metadata"]
)
def test_memory_per_object_is_within_the_documented_limit(make: Callable[[int], Object], limit: int) -> None:
    reads = [
        [json.dumps({"type": "ADDED", "object": make(read * READ + index)}).encode() for index in range(READ)]
        for read in range(READS)
    ]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [without_managed_fields(event.object) for lines in reads for event in decode_lines(lines)[0]]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == READ * READS
    assert (after - before) / len(kept) <= limit


@pytest.mark.full
async def test_list_needs_little_more_memory_than_what_is_kept() -> None:
    names = [f"n{number}" for number in range(300)]
    reply = listing(
        *(node(name, status={"images": [{"names": [f"{name}-{i}" for i in range(2000)]}]}) for name in names)
    )
    client = Client(ScriptedTransport(lists=[reply]), user_agent="test", random=Random(1))
    tracemalloc.start()
    try:
        page = await client.list_page(Selection(resource=NODES), ListOptions(limit=0), transform=_without_status)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [item["metadata"]["name"] for item in page.items] == names
    assert len(reply.body) > 6_000_000
    assert peak < 2_000_000


def _without_status(obj: Object) -> Object:
    del obj["status"]
    return obj
