"""CustomResourceDefinitions that the servers of one process share."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from hack.apiserver.status import StatusError
from hack.crds.foreign import foreign_crds, operator_crds, our_crd, service_crds
from tests.support.server.apiserver import DEFINITIONS, GROUP, WIDGETS, definition, make_server, widget
from tests.support.server.raw_client import RawClient

ALL = [*foreign_crds(), *service_crds(), *operator_crds(), our_crd()]
_STRING = {"type": "string", "default": "small"}


def _widgets(**properties: Any) -> dict[str, Any]:
    """Return a definition whose spec has these properties only."""
    spec = {"type": "object", "properties": properties, "default": {}}
    return definition("widgets", "Widget", {"type": "object", "properties": {"spec": spec}})


async def test_definition_is_stored_as_a_request_creates_it() -> None:
    defined, requested = make_server(), make_server()
    defined.define(ALL)
    for crd in ALL:
        assert (await RawClient(requested).post(DEFINITIONS, crd)).status == 201
    listed = [(await RawClient(server).get(DEFINITIONS)).body for server in (defined, requested)]
    # The order of keys counts: kubectl prints objects in it.
    assert json.dumps(listed[0]) == json.dumps(listed[1])


async def test_change_of_a_shared_definition_stays_in_its_server() -> None:
    shared = _widgets(size=_STRING)
    sent = deepcopy(shared)
    servers = make_server(), make_server()
    for server in servers:
        server.define([shared])
    changing, other = map(RawClient, servers)
    path = f"{DEFINITIONS}/widgets.{GROUP}"
    wider = _widgets(size=_STRING, colour={"type": "string"})["spec"] | {"names": {"shortNames": ["w"]}}
    before = (await other.get(path)).body
    assert (await changing.patch(path, {"spec": wider, "metadata": {"labels": {"a": "b"}}})).status == 200
    red = widget("one", colour="red")
    assert (await changing.post(WIDGETS, red)).body["spec"] == {"colour": "red", "size": "small"}
    assert (await other.get(path)).body == before
    assert (await other.post(WIDGETS, red)).body["spec"] == {"size": "small"}
    assert (await changing.delete(path)).status == 200
    assert (await other.get(WIDGETS)).names == ["one"]
    assert shared == sent


async def test_servers_give_a_shared_definition_their_own_identity() -> None:
    shared = _widgets(size=_STRING)
    uids = set()
    for seed in (1, 2):
        server = make_server(seed)
        server.define([shared])
        uids.add((await RawClient(server).get(DEFINITIONS)).body["items"][0]["metadata"]["uid"])
    assert len(uids) == 2


async def test_defining_an_unsupported_keyword_is_refused() -> None:
    with pytest.raises(StatusError, match="multipleOf: Forbidden"):
        make_server().define([_widgets(size={"type": "integer", "multipleOf": 2})])
