"""The webhook's server: bad input, limits, and unexpected errors."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.webhook.webhook import (
    NO_CACHES,
    STRANGER,
    EmptyCluster,
    admission,
    head,
    posted,
    review,
    webhook,
)
from upgrade_manager.api.spec import MAX_NODES
from upgrade_manager.kube.objects import Object
from webhook.admission import MAX_FINDINGS, Admission
from webhook.body import BODY_TIMEOUT, LARGE_BODY, MAX_BODY, MAX_RECEIVING
from webhook.catalogue import CHECKS
from webhook.check import Check, Finding, Subject
from webhook.cluster import Listing, NotInstalled
from webhook.review import MAX_MESSAGE
from webhook.server import PATH

VALID = json.dumps(review()).encode()
OTHERS = f"other reviews of more than {LARGE_BODY} bytes are in progress. Try again"


def checking(*findings: Finding, name: str = "test") -> Check:
    async def find(_: Subject) -> tuple[Finding, ...]:
        return findings

    return Check(name=name, field="spec", find=find)


def denying(*findings: Finding) -> Admission:
    return admission(checks=[checking(*findings)])


@pytest.mark.rule("admission: every request gets a decision with its uid or a 4xx, whatever it contains")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"", "the body is not JSON", id="empty"),
        pytest.param(b"hello", "the body is not JSON", id="not JSON"),
        pytest.param(VALID[:-1], "the body is not JSON", id="truncated"),
        pytest.param(VALID + b"{}", "the body is not JSON", id="two documents"),
        pytest.param(b"[" * 90_000, "the body is not JSON: RecursionError", id="deep"),
        pytest.param(b"[" + b"[]," * 100_000 + b"[]]", "has more than 100,000 lists and mappings", id="lists"),
        pytest.param(b"[" + b"{}," * 100_000 + b"[]]", "has more than 100,000 lists and mappings", id="mappings"),
        pytest.param(b'{"kind": 1' + b"0" * 5000 + b"}", "the body is not JSON", id="number of many digits"),
        pytest.param(VALID.replace(b'"demo"', b"NaN"), "the body is not JSON", id="NaN"),
        pytest.param(VALID.replace(b"demo", b"\xff\xfe"), "the body is not JSON: UnicodeDecodeError", id="not UTF-8"),
        pytest.param(VALID.decode().encode("utf-16"), "the body is not JSON: UnicodeDecodeError", id="UTF-16"),
        pytest.param(VALID.replace(b"demo", rb"\ud800"), "not JSON: UnicodeEncodeError", id="half a character"),
        pytest.param(VALID.replace(b'"metadata"', rb'"\uDBFF"'), "not JSON: UnicodeEncodeError", id="half in a key"),
        pytest.param(b"null", "the body is not an AdmissionReview of admission.k8s.io/v1", id="null"),
        pytest.param(VALID.replace(b"io/v1", b"io/v1beta1"), "the body is not an AdmissionReview", id="other version"),
        pytest.param(VALID.replace(b"AdmissionReview", b"Pod"), "the body is not an AdmissionReview", id="other kind"),
        pytest.param(VALID.replace(b'"a-uid"', b"null"), "has no request with a uid", id="no uid"),
        pytest.param(VALID.replace(b"a-uid", b"u" * 500), "has no request with a uid", id="long uid"),
        pytest.param(VALID.replace(b'"request"', b'"response"'), "has no request with a uid", id="no request"),
    ],
)
async def test_body_that_is_not_a_review_gives_400(body: bytes, reason: str) -> None:
    async with webhook() as server:
        response = await server.post(body)
        assert response.status == 400
        assert reason in response.text
        assert server.metric("requests_total", operation="unknown", allowed="false") == 1
        assert server.metric("duration_seconds_count", operation="unknown", allowed="false") == 1


@pytest.mark.parametrize("content_type", ["text/plain", "application/yaml", "", "a", "application/json-patch+json"])
async def test_other_content_type_gives_400(content_type: str) -> None:
    response = await posted(VALID, content_type=content_type)
    assert (response.status, response.text) == (400, "the Content-Type is not application/json")


def get(path: str) -> list[bytes]:
    return [f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()]


def with_head(header: str, *body: bytes) -> list[bytes]:
    """Return a request with other headers in place of the length of its body."""
    return [head(0).replace(b"Content-Length: 0", header.encode()), *body]


COMPRESSED = zlib.compress(VALID)
LENGTH = f"Content-Length: {len(COMPRESSED)}\r\nContent-Encoding: "
DECODES = "the webhook does not decode bodies. Send the review without Content-Encoding"
LATE = f"the body was not received within {BODY_TIMEOUT:g} s"


@pytest.mark.rule("admission: a body is limited in size, in time, and together with other large ones")
@pytest.mark.parametrize(
    ("sent", "status", "text"),
    [
        pytest.param([head(len(VALID), path="/other") + VALID], 404, "", id="another path"),
        pytest.param(get(PATH), 405, "", id="another method"),
        *(pytest.param(get(path), 200, "", id=path[1:]) for path in ("/healthz", "/readyz")),
        *(
            pytest.param(with_head(LENGTH + coding, COMPRESSED), 415, DECODES, id=f"encoding {coding!r}")
            for coding in ("gzip", "deflate", "br", "identity", "")
        ),
        pytest.param([head(len(VALID))], 408, LATE, id="no body"),
        pytest.param([head(len(VALID)) + VALID[:1]], 408, LATE, id="part of the body"),
        pytest.param(with_head("Transfer-Encoding: chunked", b"zz\r\n"), 408, "", id="chunks"),
        pytest.param(with_head("Content-Length: -1"), 400, "", id="length"),
        pytest.param(with_head("Content-Length: 1\r\nTransfer-Encoding: chunked"), 400, "", id="contradiction"),
    ],
)
async def test_request_that_is_not_a_review_has_its_status(sent: list[bytes], status: int, text: str) -> None:
    async with webhook() as server:
        response = await server.send(sent)
    assert response.status == status
    assert text in {"", response.text}
    assert b"Traceback" not in response.body


@pytest.mark.rule("admission: a body is limited in size, in time, and together with other large ones")
async def test_body_of_3_mib_is_read_and_a_larger_one_gives_413() -> None:
    largest = VALID + b" " * (MAX_BODY - len(VALID))
    assert (await posted(largest)).status == 200
    response = await posted(largest + b" ")
    assert (response.status, response.text) == (413, "the body has more than 3145728 bytes")


@pytest.mark.rule("admission: a body is limited in size, in time, and together with other large ones")
async def test_trickling_body_gives_408() -> None:
    async with webhook() as server:
        pieces = [head(len(VALID)), *(VALID[at : at + 1] for at in range(len(VALID)))]
        assert (await server.send(pieces, interval=1.0)).status == 408


async def test_review_of_the_largest_plan_is_read() -> None:
    nodes = {f"node-{number}": {"state": "PostDrained", "message": "done"} for number in range(MAX_NODES)}
    owned: dict[str, Any] = {f"f:{name}": {".": {}, "f:state": {}, "f:message": {}} for name in nodes}
    managed = [{"fieldsV1": {"f:status": {"f:nodeUpgradeStatuses": owned}}}]
    plan = {"metadata": {"name": "demo", "managedFields": managed}, "status": {"nodeUpgradeStatuses": nodes}}
    async with webhook(admission(checks=[])) as server:
        assert (await server.post(review("DELETE", object=None, oldObject=plan))).status == 200
        assert (await server.post(review("UPDATE", object=plan, oldObject=plan))).status == 200


async def test_client_that_disconnects_leaves_nothing() -> None:
    async with webhook() as server:
        with capture_logs() as lines:
            await server.disconnect([head(MAX_BODY) + b" " * (MAX_BODY - 1)])
            await server.disconnect([head(MAX_BODY) + b" " * (MAX_BODY - 1)])
        assert [line["peer"] for line in lines if line["event"] == "bad review"] == [STRANGER] * 2
        assert (await server.post(VALID + b" " * LARGE_BODY)).status == 200


@pytest.mark.rule("admission: a body is limited in size, in time, and together with other large ones")
async def test_large_reviews_in_progress_are_limited() -> None:
    async def wait(_: Subject) -> list[Finding]:
        await asyncio.sleep(1)
        return []

    async with webhook(admission(checks=[Check(name="slow", field="spec", find=wait)])) as server:
        async with asyncio.TaskGroup() as group:
            largest = group.create_task(server.post(VALID + b" " * (MAX_BODY - len(VALID))))
            await asyncio.sleep(0.5)
            response = await server.post(VALID + b" " * LARGE_BODY)
            assert (response.status, response.text) == (429, OTHERS)
            assert (await server.post(VALID)).status == 200
        assert largest.result().status == 200
        assert (await server.post(VALID + b" " * LARGE_BODY)).status == 200


@pytest.mark.rule("admission: a body is limited in size, in time, and together with other large ones")
async def test_slow_large_bodies_give_way_to_a_complete_one() -> None:
    count = MAX_RECEIVING // MAX_BODY
    async with webhook() as server:
        async with asyncio.TaskGroup() as group:
            slow = [group.create_task(server.send([head(MAX_BODY) + b" " * (MAX_BODY - 1)])) for _ in range(count)]
            await asyncio.sleep(BODY_TIMEOUT / 2)
            assert (await server.post(VALID + b" " * LARGE_BODY)).status == 200
        responses = [task.result() for task in slow]
    assert [response.status for response in responses] == [429] + [408] * (count - 1)
    assert responses[0].text == OTHERS


@pytest.mark.rule("admission: an unexpected error denies")
async def test_unexpected_error_denies_with_the_uid() -> None:
    class Broken(Admission):
        async def decide(self, _: object) -> None:  # type: ignore[override]
            raise ZeroDivisionError("a secret")

    async with webhook(Broken(EmptyCluster(), caches=NO_CACHES, toolkit=TOOLKIT)) as server:
        response = await server.post(review())
        assert (response.status, response.review["uid"], response.review["allowed"]) == (200, "a-uid", False)
        assert response.messages == [": The review failed unexpectedly. See the log of the webhook, then try again"]
        assert "secret" not in response.text
        assert server.metric("requests_total", operation="CREATE", allowed="false") == 1


async def test_unexpected_error_of_a_check_denies_with_its_name() -> None:
    async def fail(_: Subject) -> list[Finding]:
        raise ZeroDivisionError("a secret")

    checks = [Check(name="broken", field="spec", find=fail), checking()]
    [message] = (await posted(review(), admission(checks=checks))).messages
    assert message.startswith("spec: check 'broken' cannot be made: internal error")


@pytest.mark.rule("admission: a denial has at most 100 findings of 1 KiB, at least one of each failed check")
async def test_findings_are_deduplicated_and_cut() -> None:
    many = [Finding(problem=f"VM {number}", field="spec") for number in range(5000)]
    checks = [checking(*many, *many), checking(Finding(problem="last"), name="b")]
    response = await posted(review(), admission(checks=checks))
    assert len(response.messages) == MAX_FINDINGS + 1
    assert response.messages[0] == "spec: VM 0"
    more = "spec: and 4,901 more. To print all, run upgrade-manager preflight -f plan.yaml"
    assert response.messages[-2:] == ["spec: last", more]


@pytest.mark.rule("admission: a denial has at most 100 findings of 1 KiB, at least one of each failed check")
async def test_long_messages_are_cut_to_1_kib() -> None:
    findings = [Finding(problem=f"{number} " + "\N{SNOWMAN}" * 5000) for number in range(200)]
    response = await posted(review(), denying(*findings))
    assert {len(message.removeprefix("spec: ").encode()) <= MAX_MESSAGE for message in response.messages} == {True}
    assert response.messages[0].endswith("…")
    assert len(response.body) < 1 << 20


async def test_control_characters_and_surrogates_are_replaced() -> None:
    response = await posted(review(name="demo\x00\n"), denying(Finding(problem="a\x1b[31m\nb\ud800c")))
    assert response.messages == ["spec: a?[31m?b?c"]
    assert '"demo??" is invalid' in response.review["status"]["message"]


RUNNING = {"metadata": {"name": "demo"}, "status": {"conditions": [{"type": "Progressing", "status": "True"}]}}
LONG = {"metadata": {"name": "demo"}, "spec": {"nodeUpgradeOption": {"pauseNodes": ["n"] * 5001}}}
LACKS, PLANS_ONLY = "The review lacks the object", "reviews management.harvesterhci.io/v1beta1, Kind=UpgradePlan only"
OPERATIONS = "reviews CREATE, UPDATE and DELETE only"


@pytest.mark.rule("admission: what the webhook does not know is denied")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"kind": None}, PLANS_ONLY, id="no kind"),
        pytest.param({"kind": {"group": "", "version": "v1", "kind": "Pod"}}, PLANS_ONLY, id="Pod"),
        pytest.param({"operation": "CONNECT"}, OPERATIONS, id="CONNECT"),
        pytest.param({"operation": None}, OPERATIONS, id="no operation"),
        pytest.param({"object": None}, LACKS, id="no object"),
        pytest.param({"object": "plan"}, LACKS, id="object of another type"),
        pytest.param({"operation": "UPDATE", "oldObject": None}, LACKS, id="update without the old object"),
        pytest.param({"operation": "DELETE", "oldObject": None}, LACKS, id="deletion without the old object"),
        pytest.param(
            {"operation": "DELETE", "name": "", "object": None, "oldObject": RUNNING},
            "UpgradePlan demo is in progress (phase unknown)",
            id="deletion of a collection",
        ),
        pytest.param(
            {"object": LONG},
            "spec.nodeUpgradeOption.pauseNodes: The list has 5001 names. Use at most 5000",
            id="long pause list, denied as a whole",
        ),
    ],
)
async def test_review_is_denied_with_one_reason(fields: dict[str, Any], reason: str) -> None:
    response = await posted(review(**fields))
    assert response.review["allowed"] is False
    [message] = response.messages
    assert reason in message


async def test_subresource_is_allowed() -> None:
    assert (await posted(review("CREATE"))).review["allowed"] is False
    assert (await posted(review("CREATE", subResource="status"))).review["allowed"] is True


@pytest.mark.rule("admission: every decision and check is counted")
async def test_metrics_start_at_zero_and_count() -> None:
    async with webhook() as server:
        assert server.metric("requests_total", operation="DELETE", allowed="true") == 0
        assert server.metric("checks_total", check="nodes", outcome="failed") == 0
        await server.post(review())
        assert server.metric("requests_total", operation="CREATE", allowed="false") == 1
        assert server.metric("duration_seconds_count", operation="CREATE", allowed="false") == 1
        assert server.metric("checks_total", check="nodes", outcome="failed") == 1
        assert server.metric("check_findings_total", check="nodes") == 1
        assert server.metric("check_duration_seconds_count", check="nodes") == 1
        assert server.metric("requests_in_flight") == 0


async def test_api_that_is_not_installed_is_a_warning() -> None:
    class Bare:
        async def list(self, listing: Listing) -> Sequence[Object]:
            raise NotInstalled(listing.resource.name)

    nodes = next(check for check in CHECKS if check.name == "nodes")
    response = await posted(review(), admission(reader=Bare(), checks=[nodes]))
    assert response.review["allowed"] is True
    assert response.review["warnings"] == ["check 'nodes' skipped: the cluster does not serve nodes"]


async def test_generated_name_is_shown_by_its_prefix() -> None:
    response = await posted(review(name="", object={"metadata": {"generateName": "to-v1.8-"}}))
    assert '"to-v1.8-" is invalid' in response.review["status"]["message"]
