from __future__ import annotations

import pytest

from upgrade_manager.toolkit.host.kubernetes_version import kubelet_version


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
