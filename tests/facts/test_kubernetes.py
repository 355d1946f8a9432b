"""Versions of Kubernetes."""

from __future__ import annotations

import pytest

from upgrade_manager.facts.kubernetes import is_older, is_same, kubelet_version


@pytest.mark.parametrize(
    ("reported", "wanted", "older"),
    [
        pytest.param("v1.34.3+rke2r1", "v1.35.2+rke2r1", True, id="a minor version"),
        pytest.param("v1.35.1+rke2r1", "v1.35.2+rke2r1", True, id="a patch version"),
        pytest.param("v1.9.0", "v1.10.0", True, id="by number, not by letter"),
        pytest.param("v1.35.2+rke2r1", "v1.35.2+rke2r1", False, id="the same"),
        pytest.param("v1.35.2+rke2r1", "v1.35.2-rc3+rke2r1", False, id="the kubelet reports no pre-release"),
        pytest.param("v1.35.2+rke2r1", "v1.35.2+rke2r2", True, id="an older build"),
        pytest.param("v1.35.2+rke2r10", "v1.35.2+rke2r9", False, id="a build by number"),
        pytest.param("v1.36.0+rke2r1", "v1.35.2+rke2r1", False, id="a newer one"),
        pytest.param("1.34.3", "v1.35.2", True, id="without a v"),
        pytest.param("", "v1.35.2", False, id="not reported"),
        pytest.param("v1.34.3", "latest", False, id="no version"),
        pytest.param("v1.34", "v1.35.2", False, id="half a version"),
        pytest.param("v1.34." + "9" * 5000, "v1.35.2", False, id="no number of this world"),
    ],
)
def test_versions_compare_by_number_and_build(reported: str, wanted: str, older: bool) -> None:  # noqa: FBT001  # a table
    assert is_older(reported, wanted) is older


@pytest.mark.parametrize(
    ("reported", "same"),
    [
        pytest.param("v1.35.2+rke2r2", False, id="another build"),
        pytest.param("v1.35.2-rc3+rke2r1", True, id="a candidate"),
        pytest.param("v1.35.3+rke2r1", False, id="another patch version"),
        pytest.param("", False, id="not reported"),
    ],
)
def test_node_of_the_releases_kubernetes_is_recognized(reported: str, *, same: bool) -> None:
    assert is_same(reported, "v1.35.2+rke2r1") is same


def test_two_unknown_versions_are_not_the_same() -> None:
    assert not is_same("", "latest")


@pytest.mark.parametrize(
    ("release", "kubelet"),
    [
        ("v1.35.2+rke2r1", "v1.35.2+rke2r1"),
        ("v1.35.2-rc3+rke2r1", "v1.35.2+rke2r1"),
        ("v1.35.2-rc12+rke2r1", "v1.35.2+rke2r1"),
        ("v1.35.2+rke2r1-rc2", "v1.35.2+rke2r1"),
    ],
)
def test_kubelet_does_not_report_a_release_candidate(release: str, kubelet: str) -> None:
    assert kubelet_version(release) == kubelet
