"""The preflight checks, on an API server with simulated kubelets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.cluster.preflight import (
    CONFIGURATION,
    GIB,
    REFUSED,
    STATS,
    PreflightSetup,
    api_servers,
    configuration,
    summary,
    valid_for,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import REFUSED as REFUSED_REASON
from upgrade_manager.kube.errors import UNTRUSTED, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.preflight.check import Passed, Pending, Rejected

SKIP = "management.harvesterhci.io/skip-garbage-collection-threshold-check"
DAYS = "management.harvesterhci.io/min-certs-expiration-in-day"
FULL = summary(used=250 * GIB)


@pytest.fixture
async def waiting(setup: PreflightSetup) -> PreflightSetup:
    """Wait for the kubelet of n2."""
    setup.kubelets.responses = {("n2", STATS): 503}
    assert isinstance(await setup.check(), Pending)
    return setup


@pytest.mark.rule("pipeline: the kubelet of each managed node reports usage and threshold")
async def test_healthy_cluster_passes_with_minimal_requests(setup: PreflightSetup) -> None:
    assert await setup.decide() == (Passed(), [])
    assert sorted(setup.kubelets.requests) == sorted(
        (node, path) for node in setup.nodes for path in (CONFIGURATION, STATS)
    )
    assert sorted(setup.probe.requests) == [("10.0.0.1", 6443), ("10.0.0.2", 6443)]


FULL_BY_DEFAULT = {("n1", STATS): FULL, ("n1", CONFIGURATION): configuration()}
THRESHOLD_30 = configuration(imageGCHighThresholdPercent=30)
DISK_ROWS = [
    pytest.param({("n2", STATS): FULL}, ["node n2 (87.7 % > 85 %)"], id="one node"),
    pytest.param(
        {("n1", STATS): FULL, ("n3", STATS): summary(used=300 * GIB)},
        ["node n1 (87.7 % > 85 %)", "node n3 (104.4 % > 85 %)"],
        id="several nodes",
    ),
    pytest.param(FULL_BY_DEFAULT, ["node n1 (87.7 % > 85 %)"], id="default threshold"),
    pytest.param({("n2", CONFIGURATION): THRESHOLD_30}, ["node n2 (34.4 % > 30 %)"], id="own threshold"),
]


@pytest.mark.rule(
    "pipeline: every node that fails is named",
    "pipeline: the threshold is the kubelet's imageGCHighThresholdPercent",
    "pipeline: the default threshold is 85",
    "pipeline: the message has node, projected percentage and threshold",
)
@pytest.mark.parametrize(("responses", "named"), DISK_ROWS)
async def test_full_disks_are_reported_by_node(
    setup: PreflightSetup, responses: dict[tuple[str, str], Any], named: list[str]
) -> None:
    setup.kubelets.responses = responses
    cause, waited = await setup.rejected()
    assert f": {', '.join(named)}. Free disk space there" in cause
    assert f'{SKIP}: "true"' in cause
    assert waited == []


VERSION = {"version": "v1.8.0"}
IMAGE = {"image": "harvester-v1.8.0"}
DRAINED = {"nodeUpgradeStatuses": {"n1": {"state": "PreDrained"}}}
RELEASE = {**DRAINED, "releaseMetadata": {"harvester": "v1.8.0"}}
NOT_PRELOADED = {"nodeUpgradeStatuses": {"n1": {"state": "ImagePreloadFailed"}, "n2": {"state": "PreDrained"}}}
SKIPPED = {**VERSION, "imagePreloadOption": {"concurrency": -1}}


@pytest.mark.rule("pipeline: images that an earlier plan of the release has preloaded are not counted again")
@pytest.mark.parametrize(
    ("spec", "earlier", "status", "used", "passes"),
    [
        pytest.param(VERSION, VERSION, DRAINED, 250, True, id="same Version"),
        pytest.param(IMAGE, IMAGE, DRAINED, 250, True, id="same image"),
        pytest.param(VERSION, IMAGE, RELEASE, 250, True, id="same release by image"),
        pytest.param(VERSION, {"version": "v1.7.1"}, DRAINED, 250, False, id="another release"),
        pytest.param(VERSION, VERSION, NOT_PRELOADED, 250, False, id="not preloaded there"),
        pytest.param(VERSION, SKIPPED, DRAINED, 250, False, id="preload skipped"),
        pytest.param(VERSION, VERSION, DRAINED, 260, False, id="full all the same"),
    ],
)
async def test_preloaded_images_are_not_counted_again(
    setup: PreflightSetup, spec: Any, earlier: Any, status: Any, used: int, *, passes: bool
) -> None:
    setup.kubelets.responses = {("n1", STATS): summary(used=used * GIB)}
    first = await setup.plan("first", earlier)
    await setup.client.patch(UPGRADE_PLANS, "first", MergePatch({"status": status}), subresource="status")
    second = await setup.plan("second", spec)
    assert objects.uid(first) != objects.uid(second)
    verdict = await setup.check(plan=objects.uid(second))
    assert isinstance(verdict, Passed if passes else Rejected)


@pytest.mark.rule(
    'api: skip-garbage-collection-threshold-check "true" skips the disk space check',
    "pipeline: an annotation skips the disk check",
)
@pytest.mark.parametrize(("value", "skips"), [("true", True), ("1", True), ("false", False)])
async def test_annotation_skips_the_disk_check(setup: PreflightSetup, value: str, *, skips: bool) -> None:
    setup.kubelets.responses = {("n1", STATS): FULL}
    setup.annotations = {SKIP: value}
    verdict, _ = await setup.decide()
    assert isinstance(verdict, Passed if skips else Rejected)
    assert (setup.kubelets.requests == []) is skips


@pytest.mark.rule(
    "pipeline: a non-boolean value of that annotation fails the check",
    "pipeline: an annotation that is not a positive integer fails the certificate check",
)
@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        *(
            pytest.param(SKIP, value, '"true" or "false"', id=f"skip {value!r}")
            for value in ("", "yes", "\u202e", "x" * 5000)
        ),
        *(
            pytest.param(DAYS, value, "a whole number of days greater than 0", id=f"days {value!r}")
            for value in ("", "0", "7d", "\u0667", "9" * 30)
        ),
    ],
)
async def test_invalid_annotation_fails_its_check_only(
    setup: PreflightSetup, key: str, value: str, expected: str
) -> None:
    setup.kubelets.responses = {("n2", STATS): FULL}
    setup.probe.chains = {"10.0.0.2": [valid_for(days=1)]}
    setup.annotations = {key: value}
    cause, _ = await setup.rejected()
    assert f"Annotation {key} is " in cause
    assert f". Set it to {expected}" in cause
    assert ("node n2" in cause) == (key == DAYS)
    assert ("10.0.0.2:6443" in cause) == (key == SKIP)
    assert len(cause) < 1000


async def test_two_invalid_annotations_are_both_reported(setup: PreflightSetup) -> None:
    setup.annotations = {SKIP: "maybe", DAYS: "some"}
    cause, _ = await setup.rejected()
    assert cause.count(". Set it to") == 2
    assert (setup.kubelets.requests, setup.probe.requests) == ([], [])


@pytest.mark.rule(
    "api: min-certs-expiration-in-day is the required validity in days, an integer above 0",
    "api: the default of min-certs-expiration-in-day is 7",
    "pipeline: each certificate must be valid for the required days",
    "pipeline: the message has endpoint, earliest expiry and days",
)
@pytest.mark.parametrize(
    ("days", "annotation", "words"),
    [
        pytest.param([365, 3, 5], None, "(in 2 days, 2026-01-04T00:00:00Z)", id="the earliest in a chain"),
        pytest.param([6], None, "(in 5 days, 2026-01-07T00:00:00Z)", id="soon to expire"),
        pytest.param([-1], None, "(expired 2025-12-31T00:00:00Z)", id="expired"),
        pytest.param([20], "30", "(in 19 days, 2026-01-21T00:00:00Z)", id="sooner than asked for"),
        pytest.param([20], "20", "(in 19 days, 2026-01-21T00:00:00Z)", id="a second sooner"),
        pytest.param([8], None, "", id="later than a week from now"),
        pytest.param([2], "1", "", id="later than asked for"),
    ],
)
async def test_certificates_must_outlast_the_required_days(
    setup: PreflightSetup, days: list[int], annotation: str | None, words: str
) -> None:
    setup.probe.chains = {"10.0.0.2": [valid_for(days=each) for each in days]}
    await asyncio.sleep(0.5)
    setup.annotations = {} if annotation is None else {DAYS: annotation}
    if not words:
        assert await setup.decide() == (Passed(), [])
        return
    cause, _ = await setup.rejected()
    assert f"expire too soon (need {annotation or 7} days)" in cause
    assert f"endpoint 10.0.0.2:6443 {words}" in cause
    assert "10.0.0.1" not in cause


@pytest.mark.rule("pipeline: every API server endpoint in the EndpointSlices of default/kubernetes is checked")
async def test_endpoints_of_every_slice_of_the_service_are_probed(setup: PreflightSetup) -> None:
    other = api_servers("10.0.0.9", name="other")
    other["metadata"]["labels"] = {"kubernetes.io/service-name": "other"}
    await setup.endpoints(api_servers("10.0.0.3", name="more"), other)
    setup.probe.chains = {host: [valid_for(days=1)] for host in ("10.0.0.1", "10.0.0.3")}
    cause, _ = await setup.rejected()
    assert cause.count(":6443 (in 1 day, 2026-01-02T00:00:00Z") == 2
    assert ("10.0.0.9", 6443) not in setup.probe.requests


async def test_certificate_that_becomes_valid_in_time_passes(setup: PreflightSetup) -> None:
    setup.probe.chains = {"10.0.0.2": [valid_for(days=365, since=-20 / 86400)]}
    verdict, waited = await setup.decide()
    assert (verdict, bool(waited)) == (Passed(), True)
    assert 20 <= asyncio.get_running_loop().time() <= 30


async def test_no_endpoint_fails_after_a_minute(bare: PreflightSetup) -> None:
    cause, waited = await bare.rejected()
    words = "Service default/kubernetes (its EndpointSlices are empty)"
    assert words in cause
    assert words in waited[0]


async def test_endpoints_that_appear_in_time_are_probed(bare: PreflightSetup) -> None:
    assert isinstance(await bare.check(), Pending)
    await bare.endpoints(api_servers("10.0.0.1"))
    assert await bare.decide() == (Passed(), [])


@pytest.mark.rule("pipeline: an unreachable kubelet is retried for a minute before the check fails")
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (503, "error trying to reach service"),
        (30.0, "no response within 10 s"),
        ({"node": {}}, "node.fs.usedBytes is missing"),
    ],
)
async def test_unreachable_kubelet_fails_after_a_minute(setup: PreflightSetup, response: Any, reason: str) -> None:
    setup.kubelets.responses = {("n2", STATS): response}
    cause, waited = await setup.rejected()
    assert "Kubelet did not respond for 1 min: node n2 (" in cause
    assert reason in cause
    assert len(set(waited)) == 1
    assert waited[0].startswith("Checking nodes and API servers: waiting for the kubelet of node n2 (")
    assert reason in waited[0]
    assert 60 <= asyncio.get_running_loop().time() <= 85
    assert setup.kubelets.requests.count(("n1", STATS)) == 1


@pytest.mark.rule("pipeline: a kubelet that refuses is named with the reason and what to do")
async def test_refusing_kubelets_are_reported_by_remedy(setup: PreflightSetup) -> None:
    setup.nodes = ("n1", "n2", "n3", "n4")
    untrusted = Transient("certificate not trusted: self-signed certificate", reason=UNTRUSTED)
    setup.kubelets.responses = {("n1", STATS): 403, ("n2", STATS): 500, ("n3", STATS): 403, ("n4", STATS): untrusted}
    cause, _ = await setup.rejected()
    silent, granted, renewed = "Check the console of node n2", "Grant get on nodes/stats", "Its certificate has to be"
    assert [cause.index(text) for text in (silent, granted, renewed)] == sorted(
        cause.index(text) for text in (silent, granted, renewed)
    )
    assert "Kubelet did not respond for 1 min: node n2 (https://" in cause
    refused = cause.split("Kubelet could not be read for 1 min: ")
    assert [text.count("node n") for text in refused[1:]] == [2, 1]
    assert cause.count(granted) == cause.count(renewed) == 1


@pytest.mark.rule("pipeline: a response within the minute only delays the upgrade")
async def test_targets_that_recover_in_time_pass(setup: PreflightSetup) -> None:
    setup.kubelets.responses = {("n2", STATS): 503}
    setup.probe.chains = {"10.0.0.2": REFUSED}
    assert isinstance(await setup.check(), Pending)
    await asyncio.sleep(40)
    setup.kubelets.responses = {}
    setup.probe.chains = {}
    assert (await setup.decide())[0] == Passed()


@pytest.mark.rule("pipeline: an unreachable endpoint is retried for a minute before the check fails")
@pytest.mark.parametrize("is_reachable", [False, True], ids=["unreachable", "not valid yet"])
async def test_unusable_certificate_fails_after_a_minute(setup: PreflightSetup, *, is_reachable: bool) -> None:
    setup.probe.chains = {"10.0.0.2": [valid_for(days=365, since=-1)] if is_reachable else REFUSED}
    reason = "not valid before 2026-01-02T00:00:00Z; check the clocks" if is_reachable else str(REFUSED)
    cause, waited = await setup.rejected()
    endpoint = f"endpoint 10.0.0.2:6443 ({reason})"
    assert f"for 1 min: {endpoint}" in cause
    assert set(waited) == {f"Checking nodes and API servers: waiting for the certificate of {endpoint}"}
    assert setup.probe.requests.count(("10.0.0.1", 6443)) == 1


@pytest.mark.rule("pipeline: all checks run, and the message names all that failed")
async def test_every_failure_of_every_check_is_reported(setup: PreflightSetup) -> None:
    setup.nodes = ("n1", "n2", "n3", "n4")
    setup.kubelets.responses = {("n1", STATS): FULL, ("n4", STATS): FULL, ("n2", CONFIGURATION): 503}
    setup.probe.chains = {"10.0.0.1": [valid_for(days=-3)], "10.0.0.2": REFUSED}
    cause, _ = await setup.rejected()
    for named in ("node n1 (", "node n4 (", "node n2 (", "10.0.0.1:6443 (expired", "10.0.0.2:6443 (connection"):
        assert cause.count(named) == 1


async def test_restart_starts_the_minute_over(waiting: PreflightSetup) -> None:
    await asyncio.sleep(59)
    waiting.restart()
    began = asyncio.get_running_loop().time()
    await waiting.rejected()
    assert asyncio.get_running_loop().time() - began >= 60


async def test_another_plan_starts_without_results(waiting: PreflightSetup) -> None:
    await asyncio.sleep(61)
    waiting.kubelets.requests.clear()
    assert isinstance(await waiting.check(plan="another"), Pending)
    assert {node for node, _ in waiting.kubelets.requests} == {"n1", "n2", "n3"}


async def test_finished_check_leaves_no_results(setup: PreflightSetup) -> None:
    assert await setup.decide() == (Passed(), [])
    setup.kubelets.responses = {("n1", STATS): FULL}
    cause, _ = await setup.rejected()
    assert "node n1 (" in cause


@pytest.mark.parametrize(("field", "value"), [("annotations", {SKIP: "true"}), ("nodes", ("n1", "n3"))])
async def test_skip_or_removed_node_ends_the_wait(waiting: PreflightSetup, field: str, value: object) -> None:
    setattr(waiting, field, value)
    assert await waiting.check() == Passed()


async def test_1000_nodes_cost_two_requests_each_16_at_a_time(setup: PreflightSetup) -> None:
    setup.nodes = tuple(f"node-{number}" for number in range(1000))
    assert await setup.decide() == (Passed(), [])
    assert len(setup.kubelets.requests) == 2000
    assert setup.kubelets.max_running == 16


@pytest.mark.rule("pipeline: every node that fails is named")
@pytest.mark.parametrize(
    ("path", "response", "named", "waits"),
    [
        pytest.param(STATS, FULL, "node {} (87.7 % > 85 %)", [], id="full disks"),
        pytest.param(CONFIGURATION, 503, "{}", [True], id="failing kubelets", marks=pytest.mark.full),
    ],
)
async def test_1000_failures_fit_into_a_condition(
    setup: PreflightSetup, path: str, response: Any, named: str, waits: list[bool]
) -> None:
    setup.nodes = tuple(f"node-{number}" for number in range(1000))
    setup.kubelets.responses = {(node, path): response for node in setup.nodes}
    cause, waited = await setup.rejected()
    assert all(named.format(node) in cause for node in setup.nodes)
    assert len(cause) <= 32768
    assert ["and 997 more" in message for message in waited[:1]] == waits
    assert len(setup.kubelets.requests) <= 11 * 1000


async def test_api_server_outage_does_not_count_as_failure(
    setup: PreflightSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: Any, **__: Any) -> None:
        raise Transient("connection refused", reason=REFUSED_REASON)

    with monkeypatch.context() as patched:
        patched.setattr(Client, "list", unavailable)
        for _ in range(100):
            with pytest.raises(Transient):
                await setup.check()
            await asyncio.sleep(1)
    assert await setup.decide() == (Passed(), [])
