"""Admission webhooks: selection, verdicts, failures."""

from __future__ import annotations

import asyncio
import base64
import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.server import ApiServer
from hack.virtual_time import virtual_now
from tests.support.apiserver import DEFINITIONS, ROBOT, ROBOTS, WIDGET, WIDGETS, robot, widget
from tests.support.raw_client import RawClient
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from hack.apiserver.posting import Target

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Reviewer:
    """A webhook with a configurable verdict; records its requests."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.targets: list[Target] = []
        self.verdict: dict[str, Any] = {"allowed": True}
        self.broken = False
        self.raw: bytes | None = None
        self.pause = 0.0

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109, ARG002
        request = json.loads(body)["request"]
        self.requests.append(request)
        self.targets.append(target)
        await asyncio.sleep(self.pause)
        if self.broken:
            raise Transient("no route to host")
        answer = {"uid": request["uid"]} | self.verdict
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": answer}
        return Response(status=200, body=self.raw or json.dumps(review).encode())


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


async def test_webhook_receives_each_operation(wire: RawClient, reviewer: Reviewer) -> None:
    await install(wire)
    await wire.post(WIDGETS, widget("a", size=1))
    await wire.patch(f"{WIDGETS}/a", {"spec": {"size": 2}})
    await wire.delete(f"{WIDGETS}/a")
    create, update, delete = reviewer.requests
    assert (create["operation"], update["operation"], delete["operation"]) == ("CREATE", "UPDATE", "DELETE")
    assert create["object"]["metadata"]["uid"]
    assert create["oldObject"] is None
    assert (update["oldObject"]["spec"], update["object"]["spec"]) == ({"size": 1}, {"size": 2})
    assert delete["object"] is None
    assert delete["oldObject"]["spec"] == {"size": 2}
    assert create["kind"] == {"group": "example.io", "version": "v1", "kind": "Widget"}
    assert create["resource"] == {"group": "example.io", "version": "v1", "resource": "widgets"}
    assert (create["name"], create["namespace"]) == ("a", "default")
    assert create["userInfo"]["username"] == "system:admin"
    assert reviewer.targets[0].url == "https://127.0.0.1:1/validate?timeout=10s"
    assert reviewer.targets[0].ca_bundle == b"PEM"


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        pytest.param({"message": "too big"}, 400, ": too big", id="message"),
        pytest.param(
            {"message": "too big", "code": 403, "reason": "Forbidden"}, 403, ": too big", id="code and reason"
        ),
        pytest.param({"message": "odd", "code": 200}, 400, ": odd", id="a code of success"),
        pytest.param(None, 400, " without explanation", id="nothing"),
    ],
)
async def test_denial_is_returned(
    wire: RawClient, reviewer: Reviewer, status: dict[str, Any] | None, code: int, text: str
) -> None:
    await install(wire)
    reviewer.verdict = {"allowed": False} | ({"status": status} if status else {})
    refused = await wire.post(WIDGETS, widget("a"))
    assert refused.status == code
    assert refused.body["message"] == f'admission webhook "check.example.io" denied the request{text}'
    assert (await wire.get(f"{WIDGETS}/a")).status == 404


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("fault", ["broken", "no review", "another uid"])
async def test_failure_policy_decides_after_a_failed_call(
    wire: RawClient, reviewer: Reviewer, policy: str, fault: str
) -> None:
    await install(wire, failurePolicy=policy)
    reviewer.broken = fault == "broken"
    reviewer.raw = b"{}" if fault == "no review" else None
    reviewer.verdict |= {"uid": "x"} if fault == "another uid" else {}
    answer = await wire.post(WIDGETS, widget("a"))
    assert answer.status == (201 if policy == "Ignore" else 500)
    if policy == "Fail":
        assert answer.body["reason"] == "InternalError"
        assert answer.body["message"].startswith('Internal error occurred: failed calling webhook "check.example.io": ')


@pytest.mark.parametrize(
    ("more", "reviewed"),
    [
        pytest.param(rule(), True, id="everything"),
        pytest.param(rule(operations=["UPDATE"]), False, id="another operation"),
        pytest.param(rule(apiGroups=["apps"]), False, id="another group"),
        pytest.param(rule(apiVersions=["v2"]), False, id="another version"),
        pytest.param(rule(resources=["robots"]), False, id="another kind"),
        pytest.param(rule(resources=["widgets/status"]), False, id="a subresource only"),
        pytest.param(rule(resources=["*/*"]), True, id="everything with all subresources"),
        pytest.param(rule(resources=["robots/*"]), False, id="another kind with its subresources"),
        pytest.param(rule(scope="Cluster"), False, id="cluster scope"),
        pytest.param(rule(scope="Namespaced"), True, id="namespaced scope"),
        pytest.param({"objectSelector": {"matchLabels": {"on": "yes"}}}, False, id="other labels"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True, id="namespace"
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}, False, id="no namespace"
        ),
    ],
)
async def test_rules_and_selectors_select_requests(
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
    assert reviewer.requests


async def test_status_is_reviewed_by_its_rule(wire: RawClient, reviewer: Reviewer) -> None:
    await wire.post(WIDGETS, widget("a"))
    await install(wire, **rule(resources=["widgets/status"]))
    await wire.patch(f"{WIDGETS}/a/status", {"status": {"phase": "x"}})
    assert reviewer.requests[0]["subResource"] == "status"


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
