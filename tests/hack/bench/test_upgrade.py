from __future__ import annotations

import json
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.bench.in_process import upgraded
from hack.bench.upgrade import Translation, UnfaithfulReplay, replay, replayed
from tests.support.server.apiserver import make_server
from upgrade_manager.kube.transport import Request


def obj(name: str, uid: str, version: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}


def response(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()


@pytest.fixture
def learned() -> Translation:
    translation = Translation()
    translation.learn(response(obj("web-x7k2p", "aa-11", "10")), response(obj("web-9cvbn", "bb-22", "77")))
    return translation


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"path": "/api/v1/pods/web-x7k2p/status"}, {"path": "/api/v1/pods/web-9cvbn/status"}, id="name"),
        pytest.param({"path": "/api/v1/pods/web-x7k2"}, {"path": "/api/v1/pods/web-x7k2"}, id="part of a name"),
        pytest.param(
            {"body": b'{"metadata":{"resourceVersion":"10","uid":"aa-11"}}'},
            {"body": b'{"metadata":{"resourceVersion":"77","uid":"bb-22"}}'},
            id="version and uid in a body",
        ),
        pytest.param({"body": b'{"replicas":"10"}'}, {"body": b'{"replicas":"10"}'}, id="another number in a body"),
        pytest.param(
            {"query": (("resourceVersion", "10"), ("limit", "10"))},
            {"query": (("resourceVersion", "77"), ("limit", "10"))},
            id="version in a query",
        ),
        pytest.param(
            {"query": (("resourceVersion", "11"),)}, {"query": (("resourceVersion", "0"),)}, id="an unknown version"
        ),
    ],
)
def test_request_gets_the_other_server_identifiers(
    learned: Translation, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    empty: dict[str, Any] = {"path": "/"}
    translated = learned.translate(Request(method="GET", **(empty | given)))
    assert {key: getattr(translated, key) for key in expected} == expected


@pytest.mark.full
async def test_upgrade_is_replayed_on_a_cluster_like_it_only() -> None:
    async with upgraded(scenarios.load("three-nodes"), scale=0.0) as upgrade:
        pass
    await replayed(upgrade)
    with pytest.raises(UnfaithfulReplay, match=r"only \d+ of \d+ responses"):
        await replay(make_server(), upgrade.recorder.exchanges, Translation())
