"""Admission webhooks: what tests/conformance cannot show, since it takes a webhook that a test can slow down."""

from __future__ import annotations

import asyncio
import base64
import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.server import ApiServer
from hack.virtual_time import virtual_now
from tests.support.server.apiserver import DEFINITIONS, WIDGET, WIDGETS, widget
from tests.support.server.raw_client import RawClient
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from hack.apiserver.posting import Target

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Reviewer:
    """A webhook that allows every request."""

    broken = False
    pause = 0.0

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109, ARG002
        request = json.loads(body)["request"]
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
    await wire.post(DEFINITIONS, WIDGET)
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
