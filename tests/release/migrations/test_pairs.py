from __future__ import annotations

import pytest

from upgrade_manager.release.migrations import pairs
from upgrade_manager.release.migrations.pair import minor_of

KNOWN = "Known are the upgrades within v1.7, from v1.7 to v1.8 and within v1.8"


@pytest.mark.parametrize(
    ("current", "target"),
    [
        ("v1.7.1", "v1.8.0"),
        ("v1.7.1-rc1", "v1.8.0-rc6"),
        ("1.7.0", "v1.7.2"),
        ("v1.8.0", "v1.8.2"),
        ("v1.8.0", "v1.8.0"),
    ],
)
def test_known_pair_is_not_refused(current: str, target: str) -> None:
    assert pairs.refusal(current, target) == ""


@pytest.mark.parametrize(
    ("current", "target", "why"),
    [
        ("v1.6.1", "v1.7.1", "the step from v1.6 to v1.7 is not supported: it moves each node's network"),
        ("v1.8.2", "v1.9.0", "the steps from v1.8 to v1.9 are provisional: v1.9 was not final"),
        ("v1.9.0-rc1", "v1.9.0", "the steps within v1.9 are provisional: "),
        ("v1.7.1", "v1.9.0", "the steps between these releases are unknown"),
        ("v1.5.0", "v1.6.0", "the steps between these releases are unknown"),
        ("v2.7.0", "v2.8.0", "the steps between these releases are unknown"),
        ("v1.7.1", "master-1a2b3c4d", "master-1a2b3c4d is not a release, and its steps are unknown"),
        ("v1.7-head", "v1.8.0", "v1.7-head is not a release, and its steps are unknown"),
        ("", "v1.8.0", "an empty version is not a release, and its steps are unknown"),
    ],
)
def test_other_pairs_are_refused_with_the_reason(current: str, target: str, why: str) -> None:
    refusal = pairs.refusal(current, target)
    assert refusal.startswith(why)
    assert refusal.endswith(KNOWN)


def test_pairs_are_unique_and_in_the_order_of_the_releases() -> None:
    keys = [(pair.current, pair.target) for pair in pairs.PAIRS]
    assert keys == sorted(set(keys))


def test_prerelease_counts_as_its_release() -> None:
    assert minor_of("v1.8.0-rc6") == minor_of("v1.8.2") == (1, 8)
