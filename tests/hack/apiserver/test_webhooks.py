"""Admission webhooks: scopes, versions, concurrent writes; tests/conformance shows the rest."""

from __future__ import annotations

import asyncio
import base64
import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.server import ApiServer
from hack.virtual_time import virtual_now
from tests.support.server.apiserver import DEFINITIONS, ROBOT, ROBOTS, WIDGET, WIDGETS, robot, widget
from tests.support.server.raw_client import RawClient
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from hack.apiserver.posting import Target

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = HOOKS.replace("validating", "mutating")


class Reviewer:
    """A webhook that allows every request and records it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.targets: list[Target] = []
        self.broken = False
        self.pause = 0.0

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109, ARG002
        request = json.loads(body)["request"]
        self.requests.append(request)
        self.targets.append(target)
        await asyncio.sleep(self.pause)
        if self.broken:
            raise Transient("no route to host")
        answer = {"uid": request["uid"], "allowed": True}
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": answer}
        return Response(status=200, body=json.dumps(review).encode())


@pytest.fixture
def reviewer() -> Reviewer:
    return Reviewer()


@pytest.fixture
async def wire(reviewer: Reviewer) -> RawClient:
    wire = RawClient(ApiServer(now=virtual_now, random=Random(1), poster=reviewer))
    for body in (WIDGET, ROBOT):
        await wire.post(DEFINITIONS, body)
    return wire


def hook(**more: Any) -> dict[str, Any]:
    rule = {"apiGroups": ["example.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["widgets"]}
    return {
        "name": "check.example.io",
        "clientConfig": {"url": "https://127.0.0.1:1/validate", "caBundle": base64.b64encode(b"PEM").decode()},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    } | more


async def install(wire: RawClient, **more: Any) -> None:
    created = await wire.post(HOOKS, {"metadata": {"name": "hooks"}, "webhooks": [hook(**more)]})
    assert created.status == 201, created.body


def rule(**more: Any) -> dict[str, Any]:
    every = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    return {"rules": [every | more]}


@pytest.mark.parametrize(
    ("more", "reviewed"),
    [
        pytest.param(rule(apiVersions=["v2"]), False, id="another version"),
        pytest.param(rule(resources=["*/*"]), True, id="everything with all subresources"),
        pytest.param(rule(scope="Cluster"), False, id="cluster scope"),
        pytest.param(rule(scope="Namespaced"), True, id="namespaced scope"),
    ],
)
async def test_rules_select_requests(
    wire: RawClient,
    reviewer: Reviewer,
    more: dict[str, Any],
    reviewed: bool,  # noqa: FBT001
) -> None:
    await install(wire, **more)
    await wire.post(WIDGETS, widget("a"))
    assert bool(reviewer.requests) is reviewed


async def test_cluster_scoped_objects_skip_namespace_selectors(wire: RawClient, reviewer: Reviewer) -> None:
    await install(wire, **rule(), namespaceSelector={"matchLabels": {"x": "y"}})
    await wire.post(ROBOTS, robot("a"))
    (target,) = reviewer.targets
    assert (target.url, target.ca_bundle) == ("https://127.0.0.1:1/validate?timeout=10s", b"PEM")


async def test_broken_webhook_can_be_deleted(wire: RawClient, reviewer: Reviewer) -> None:
    await install(wire, **rule())
    reviewer.broken = True
    assert (await wire.delete(f"{HOOKS}/hooks")).status == 200


@pytest.mark.parametrize("named", [False, True], ids=["patch", "patch for a version"])
async def test_concurrent_write_during_a_review_is_detected(wire: RawClient, reviewer: Reviewer, named: bool) -> None:  # noqa: FBT001
    created = await wire.post(WIDGETS, widget("a", size=1))
    await install(wire)
    reviewer.pause = 1.0
    patch: dict[str, Any] = {"spec": {"late": True}}
    if named:
        patch["metadata"] = {"resourceVersion": created.version}
    slow = asyncio.create_task(wire.patch(f"{WIDGETS}/a", patch))
    await asyncio.sleep(0.5)
    reviewer.pause = 0.0
    await wire.patch(f"{WIDGETS}/a", {"spec": {"size": 2}})
    answer = await slow
    assert answer.status == (409 if named else 200)
    if not named:
        assert answer.body["spec"] == {"size": 2, "late": True}


async def test_mutating_webhook_gets_its_defaults(wire: RawClient, reviewer: Reviewer) -> None:
    stored = await wire.post(MUTATING, {"metadata": {"name": "hooks"}, "webhooks": [hook(**rule())]})
    assert stored.body["webhooks"][0]["reinvocationPolicy"] == "Never"
    nameless = await wire.post(MUTATING, {"metadata": {"name": "other"}, "webhooks": [hook(name="x")]})
    assert nameless.status == 422
    await wire.post(WIDGETS, widget("a"))
    await wire.patch(f"{WIDGETS}/a", {"spec": {"size": 2}})
    await wire.delete(f"{WIDGETS}/a")
    # Not for the deletion.
    assert [request["operation"] for request in reviewer.requests] == ["CREATE", "UPDATE"]
