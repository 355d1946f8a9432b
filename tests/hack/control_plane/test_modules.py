"""What go.mod files say and what Go's failures mean."""

from __future__ import annotations

import pytest

from hack.control_plane.modules import DiskFull, failure, shortened, with_replacements
from hack.control_plane.pins import Module

THEIRS = """module k8s.io/kubernetes

require (
\tgo.etcd.io/etcd/api/v3 v3.6.5
\tk8s.io/api v0.0.0
\tk8s.io/klog/v2 v2.130.1
\tk8s.io/kube-openapi v0.0.0-20250910181357-589584f1c912
\tk8s.io/pod-security-admission v0.0.0
)
"""


class TestReplacements:
    def test_each_staging_module_is_replaced_by_its_release(self) -> None:
        ours = "module ours\n\nrequire k8s.io/kubernetes v1.35.4\n"
        assert with_replacements(ours, Module("k8s.io/kubernetes", "v1.35.4"), THEIRS).splitlines() == [
            *ours.splitlines(),
            "",
            "replace k8s.io/api => k8s.io/api v0.35.4",
            "replace k8s.io/pod-security-admission => k8s.io/pod-security-admission v0.35.4",
        ]


class TestFailure:
    @pytest.mark.parametrize(
        ("errors", "said"),
        [
            ("", "go gave no reason"),
            ("go: downloading k8s.io/api v0.35.4\ngo: x@v1: module lookup disabled\n", "x@v1: module lookup disabled"),
            ("\n  # k8s.io/x\nx.go:1:2: undefined: y\n", "# k8s.io/x"),
            ('x@v1: Get "https://me:pass@proxy/x": refused', 'x@v1: Get "https://proxy/x": refused'),
            ("x" * 1000, "x" * 300),
        ],
        ids=["nothing", "chatter", "compiler", "credentials", "length"],
    )
    def test_it_is_shortened_to_what_one_reads(self, errors: str, said: str) -> None:
        assert shortened(errors) == said

    def test_a_full_disk_is_no_fault_of_the_module(self) -> None:
        assert isinstance(failure("go: x: write /a: no space left on device"), DiskFull)
