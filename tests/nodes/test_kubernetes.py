from __future__ import annotations

import pytest

from upgrade_manager.nodes.node_view import is_older


@pytest.mark.parametrize(
    ("reported", "wanted", "older"),
    [
        pytest.param("v1.34.3+rke2r1", "v1.35.2+rke2r1", True, id="a minor version"),
        pytest.param("v1.35.1+rke2r1", "v1.35.2+rke2r1", True, id="a patch version"),
        pytest.param("v1.9.0", "v1.10.0", True, id="by number, not by letter"),
        pytest.param("v1.35.2+rke2r1", "v1.35.2+rke2r1", False, id="the same"),
        pytest.param("v1.35.2+rke2r1", "v1.35.2-rc3+rke2r1", False, id="the kubelet reports no pre-release"),
        pytest.param("v1.35.2+rke2r1", "v1.35.2+rke2r2", False, id="the build is not compared"),
        pytest.param("v1.36.0+rke2r1", "v1.35.2+rke2r1", False, id="a newer one"),
        pytest.param("1.34.3", "v1.35.2", True, id="without a v"),
        pytest.param("", "v1.35.2", False, id="not reported"),
        pytest.param("v1.34.3", "latest", False, id="no version"),
        pytest.param("v1.34", "v1.35.2", False, id="half a version"),
        pytest.param("v1.34." + "9" * 5000, "v1.35.2", False, id="no number of this world"),
    ],
)
def test_what_counts_is_major_minor_and_patch(reported: str, wanted: str, older: bool) -> None:  # noqa: FBT001  # a table
    assert is_older(reported, wanted) is older
