from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster.preflight import CONFIGURATION, GIB, STATS, Kubelets, configuration, summary
from upgrade_manager.preflight.disk import TIMEOUT, Disk, read_disk, read_threshold, read_usage
from upgrade_manager.preflight.kubelets import HEAD, DirectKubelets
from upgrade_manager.preflight.poller import ProbeError


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.rule("pipeline: used space + 13 GiB over capacity must not exceed the threshold")
@pytest.mark.parametrize(
    ("used", "capacity", "threshold", "suffices", "verdict"),
    [
        pytest.param(90, 300, 85, True, "34.4 % <= 85 %", id="room enough"),
        pytest.param(72, 100, 85, True, "85.0 % <= 85 %", id="exactly the threshold"),
        pytest.param(72 + 1 / GIB, 100, 85, False, "85.1 % > 85 %", id="one byte above the threshold"),
        pytest.param(72, 99, 85, False, "85.9 % > 85 %", id="above the threshold"),
        pytest.param(87, 100, 100, True, "100.0 % <= 100 %", id="a threshold of 100"),
        pytest.param(88, 100, 100, False, "101.0 % > 100 %", id="more than the capacity"),
        pytest.param(0, 300, 0, False, "4.4 % > 0 %", id="a threshold of 0"),
        pytest.param(0, 1, 85, False, "1300.0 % > 85 %", id="a disk smaller than the images"),
        pytest.param(500, 300, 85, False, "171.0 % > 85 %", id="more used than there is"),
    ],
)
def test_projected_usage_must_not_exceed_the_threshold(
    used: float, capacity: int, threshold: int, *, suffices: bool, verdict: str
) -> None:
    disk = Disk(used=int(used * GIB), capacity=capacity * GIB, threshold=threshold)
    assert (disk.suffices, disk.verdict) == (suffices, verdict)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(summary(used=5, capacity=7), id="as kubelets send it"),
        pytest.param(summary(used=5, capacity=7, inodes=None, availableBytes=None), id="without optional fields"),
        pytest.param({"pods": [{}], **summary(used=5, capacity=7)}, id="Pods first"),
        pytest.param({"new": 1, "node": {"x": 1, **summary(used=5, capacity=7)["node"]}}, id="unknown fields"),
        pytest.param(summary(used=5, capacity=7) | {"node": summary(used=5, capacity=7)["node"]}, id="no Pods"),
    ],
)
def test_usage(document: Any) -> None:
    assert read_usage(encoded(document)) == (5, 7)


def test_truncated_pod_list_is_ignored() -> None:
    whole = json.dumps({**summary(used=5, capacity=7), "pods": [{"podRef": {"name": "x" * 90}}] * 900}, indent=1)
    assert read_usage(whole[:1000].encode()) == (5, 7)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        pytest.param(summary(used=None), "node.fs.usedBytes is missing", id="no usedBytes"),
        pytest.param(summary(capacity=None), "node.fs.capacityBytes is missing", id="no capacityBytes"),
        pytest.param(summary(capacity=0), "node.fs.capacityBytes is 0", id="a capacity of 0"),
        pytest.param(summary(used=-1), "node.fs.usedBytes is -1", id="negative"),
        pytest.param(summary(used="5"), "node.fs.usedBytes is '5'", id="a string"),
        pytest.param(summary(used=5.5), "node.fs.usedBytes is 5.5", id="a fraction"),
        pytest.param(summary(used=True), "node.fs.usedBytes is True", id="a boolean"),
        pytest.param(summary(used=["x" * 90]), "is ['xxx", id="a list"),
        pytest.param(
            {"node": {"nodeName": "n"}}, "node.fs.usedBytes is missing", id="no fs: the kubelet has just started"
        ),
        pytest.param({"node": {"fs": []}}, "node.fs.usedBytes is missing", id="fs is a list"),
        pytest.param({"node": None}, "node.fs.usedBytes is missing", id="node is null"),
        pytest.param({"pods": []}, "node.fs.usedBytes is missing", id="no node"),
        pytest.param([], "node.fs.usedBytes is missing", id="no object"),
        pytest.param(float("nan"), "/stats/summary: ", id="not a number"),
    ],
)
def test_invalid_summary_is_a_probe_error(document: Any, reason: str) -> None:
    with pytest.raises(ProbeError) as caught:
        read_usage(encoded(document))
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 120


@pytest.mark.rule(
    "pipeline: the threshold is the kubelet's imageGCHighThresholdPercent",
    "pipeline: the default threshold is 85",
)
@pytest.mark.parametrize(
    ("document", "threshold"),
    [
        pytest.param(configuration(imageGCHighThresholdPercent=70), 70, id="set"),
        pytest.param(configuration(imageGCHighThresholdPercent=0), 0, id="0"),
        pytest.param(configuration(imageGCHighThresholdPercent=100), 100, id="100"),
        pytest.param(configuration(), 85, id="unset is 85"),
        pytest.param(configuration(imageGCHighThresholdPercent=None), 85, id="null is 85"),
        pytest.param({**configuration(), "imageGCHighThresholdPercent": 10}, 85, id="outside of the wrapper is unset"),
    ],
)
def test_threshold(document: Any, threshold: int) -> None:
    assert read_threshold(encoded(document)) == threshold


@pytest.mark.parametrize("value", [101, -1, "85", "85%", "", 85.0, 84.5, True, [85], {}], ids=repr)
def test_invalid_threshold_is_a_probe_error(value: Any) -> None:
    with pytest.raises(ProbeError) as caught:
        read_threshold(encoded(configuration(imageGCHighThresholdPercent=value)))
    assert str(caught.value) == f"/configz: imageGCHighThresholdPercent is {value!r}, not 0 to 100"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b'{"node": {"fs"', b'{"node": ' + b"[" * 100_000, b"[" * 100_000, b"\xff\xfe{"],
    ids=["empty", "HTML", "cut off", "nested deeply", "nested deeply, no node", "no UTF-8"],
)
@pytest.mark.parametrize("read", [read_usage, read_threshold])
def test_invalid_json_is_a_probe_error(read: Callable[[bytes], object], body: bytes) -> None:
    with pytest.raises(ProbeError, match=r"^(/stats/summary|/configz): invalid JSON$"):
        read(body)


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"kubeletconfig": []}', b'{"imageGCHighThresholdPercent": 85}'])
def test_configuration_without_its_wrapper_is_a_probe_error(body: bytes) -> None:
    with pytest.raises(ProbeError, match="kubeletconfig is missing"):
        read_threshold(body)


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.integers(),
        lambda x: st.dictionaries(
            st.sampled_from(
                ["node", "fs", "usedBytes", "capacityBytes", "kubeletconfig", "imageGCHighThresholdPercent"]
            ),
            x,
        ),
    ).map(encoded)
)
def test_random_responses_are_parsed_or_rejected(body: bytes) -> None:
    for read in (read_usage, read_threshold):
        try:
            read(body)
        except ProbeError as error:
            assert str(error)  # noqa: PT017  # either way is right


@given(st.integers(0, 2**63), st.integers(1, 2**63), st.integers(0, 100))
def test_text_agrees_with_the_result(used: int, capacity: int, threshold: int) -> None:
    disk = Disk(used=used, capacity=capacity, threshold=threshold)
    shown = float(disk.verdict.split(" ", 1)[0])
    assert (shown > threshold) == (not disk.suffices)


@pytest.mark.rule("pipeline: the kubelet of each managed node reports usage and threshold")
async def test_summary_and_configz_are_read_once() -> None:
    kubelets = Kubelets({("n1", CONFIGURATION): configuration(imageGCHighThresholdPercent=60)})
    disk = await read_disk(DirectKubelets(kubelets), kubelets.node("n1"))
    assert disk == Disk(used=90 * GIB, capacity=300 * GIB, threshold=60)
    assert kubelets.requests == [("n1", CONFIGURATION), ("n1", STATS)]


async def test_long_response_is_truncated() -> None:
    pods = [{"podRef": {"name": "x" * 1000}}] * (2 * HEAD // 1000)
    kubelets = Kubelets({("n1", STATS): {**summary(), "pods": pods}})
    assert (await read_disk(DirectKubelets(kubelets), kubelets.node("n1"))).used == 90 * GIB


@pytest.mark.parametrize("path", [STATS, CONFIGURATION])
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        pytest.param(b"<html>", "invalid JSON", id="no JSON"),
        pytest.param(b"", "invalid JSON", id="nothing"),
        pytest.param(60.0, f"no response within {TIMEOUT:g} s", id="timeout"),
        pytest.param(500, "500 error trying to reach service", id="refused"),
    ],
)
async def test_unusable_response_is_a_probe_error(path: str, response: Any, reason: str) -> None:
    kubelets = Kubelets({("n1", path): response})
    with pytest.raises(ProbeError, match=reason):
        await read_disk(DirectKubelets(kubelets), kubelets.node("n1"))
