from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.release.version import Incomparable, InvalidVersion, Version, check_eligibility

RELEASE, PRERELEASE, DEV = "release", "prerelease", "dev"

identifiers = st.text("09azZ-", min_size=1, max_size=4)
tags = st.lists(identifiers, min_size=1, max_size=3).map(".".join)
cores = st.tuples(*[st.integers(0, 3)] * 3)
releases = cores.map(lambda core: "v{}.{}.{}".format(*core))
anything = st.one_of(
    releases,
    st.builds(lambda core, tag: f"{core}-{tag}", releases, tags),
    st.builds(lambda core, tag: f"{core}+{tag}", releases, tags),
    st.sampled_from(["master-head", "v1.6-head", "", "v"]),
    st.text(max_size=12),
)


def class_of(text: str) -> str:
    version = Version.parse(text)
    if version.is_dev:
        return DEV
    return PRERELEASE if version.is_prerelease else RELEASE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, RELEASE) for text in ("v1.6.1", "1.6.1", "v1.6.1+up2")),
        *((f"v1.6.{tag}", PRERELEASE) for tag in ("1-rc1", "1-rc.1", "1-rc01", "0-head", "1-dirty")),
        *((text, DEV) for text in ("v1.6-head", "v1.6", "1", "master-head", "f024f49a", "aabbccdd-dirty", "v01.6.1")),
        *((text, DEV) for text in ("vv1.6.1", "V1.6.1", "v1.6.1.1", "v1.6.1-01", " v1.6.1", "1.6.1-", "1.6.1+")),
        *((text, DEV) for text in ("v1.6.1-rc1\n", "v1.\u0666.1", "v18446744073709551616.0.0")),
        ("v1." + "9" * 5000 + ".0", DEV),
    ],
)
def test_texts_are_classified(text: str, expected: str) -> None:
    assert class_of(text) == expected


@pytest.mark.parametrize("text", ["", "v"])
def test_empty_versions_are_invalid(text: str) -> None:
    with pytest.raises(InvalidVersion):
        Version.parse(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [("1.6.1", "v1.6.1"), ("v1.6.1-rc1", "v1.6.1-rc1"), ("1.6.1-rc.1+up2", "v1.6.1-rc.1+up2"), ("v1.6", "v1.6")],
)
def test_versions_print_with_a_v(text: str, printed: str) -> None:
    assert str(Version.parse(text)) == printed


CASES = [
    (1, "v1.6.1", "v1.7.0", "v1.6.0", True, None),
    (2, "v1.6.0", "v1.7.0", "v1.6.0", True, None),
    (3, "v1.5.2", "v1.7.0", "v1.6.0", True, "too old"),
    (4, "v1.6.1", "v1.6.1", "v1.6.0", True, None),
    (5, "v1.5.0", "v1.5.0", "v1.6.0", True, None),
    (6, "v1.7.0", "v1.6.1", "v1.5.0", True, "downgrades"),
    (7, "v1.6.1", "v1.6.1-rc2", "v1.6.0", True, "downgrades"),
    (8, "v1.6.1", "v1.7.0-rc1", "v1.6.0", True, None),
    (9, "v1.5.9", "v1.7.0-rc1", "v1.6.0", True, "too old"),
    (10, "v1.6.1", "v1.7.0", "", True, None),
    (11, "v1.1.0", "v1.7.0", "", True, None),
    (12, "v1.7.0-rc1", "v1.7.0-rc2", "v1.6.0", True, None),
    (13, "v1.7.0-rc2", "v1.7.0-rc1", "v1.6.0", True, "downgrades"),
    (14, "v1.7.0-rc9", "v1.7.0-rc10", "v1.6.0", True, "downgrades"),
    (15, "v1.7.0-rc10", "v1.7.0-rc9", "v1.6.0", True, None),
    (16, "v1.7.0-rc.9", "v1.7.0-rc.10", "v1.6.0", True, None),
    (17, "v1.7.0-rc1", "v1.7.0", "v1.6.0", True, None),
    (18, "v1.7.0-rc1", "v1.7.1", "v1.6.0", True, "a prerelease"),
    (19, "v1.7.0-rc1", "v1.8.0-rc1", "v1.6.0", True, "a prerelease"),
    (20, "v1.6.0-rc1", "v1.7.0", "v1.6.0", True, "too old"),
    (21, "v1.7.0-rc1", "v1.6.1", "v1.6.0", True, "downgrades"),
    (22, "v1.7.0-rc1", "v1.7.0-rc1", "v1.7.0", True, None),
    (23, "v1.6.1", "v1.7-head", "v1.6.0", True, None),
    (24, "v1.5.0", "master-1a2b3c4d", "v1.6.0", True, None),
    (25, "v1.7.0-rc1", "f024f49a", "", True, None),
    (26, "v1.7-head", "v1.7-head", "v1.6.0", True, None),
    (27, "v1.7-head", "master-head", "", True, None),
    (28, "v1.7-head", "v1.7.0", "v1.6.0", True, "a development build"),
    (29, "v1.7-head", "v1.7.0", "v1.6.0", False, None),
    (30, "master-1a2b3c4d", "v1.7.0-rc1", "v1.6.0", True, "a development build"),
    (31, "master-1a2b3c4d", "v1.2.0", "v1.6.0", False, None),
    (32, "v1.6.1", "v1.7.0", "v1.6-head", True, "cannot be compared"),
    (33, "v1.6.1", "v1.7.0", "v1.6.1-rc1", True, None),
    (34, "v1.6.1-rc2", "v1.6.1", "v1.6.1-rc1", True, None),
    (35, "v1.6.1-rc1", "v1.6.1", "v1.6.1-rc2", True, "too old"),
    (36, "v1.6.1", "v1.7.0-head", "v1.6.0", True, None),
    (37, "v1.7.0-head", "v1.7.0", "v1.6.0", True, None),
    (38, "v1.7.0-head", "v1.7.0-rc1", "v1.6.0", True, None),
    (39, "1.6.1", "v1.7.0", "v1.6.0", True, None),
    (40, "v1.6.1+up1", "v1.6.1+up2", "v1.6.0", True, None),
    (41, "v1.6.1", "v1.7.0", "1.6.0", False, None),
    (42, "v1.7.0-zz1", "v1.7.0", "v1.6.0", True, "downgrades"),
    (43, "", "v1.7.0", "v1.6.0", True, "is invalid"),
    ("minimum with build metadata", "v1.7.0-rc1", "v1.7.0", "v1.6.0+up1", True, "too old"),
    ("target with build metadata", "v1.8.0-rc1", "v1.7.0+up1", "", True, "a prerelease"),
    ("a minimum of v alone", "v1.1.0", "v1.7.0", "v", True, None),
    ("no target", "v1.1.0", "", "", True, "is invalid"),
    ("a minimum that is not a version", "v1.6.1", "v1.7.0", "soon", True, "cannot be compared"),
]


@pytest.mark.parametrize(
    ("current", "target", "minimum", "strict", "denied"), [pytest.param(*row[1:], id=str(row[0])) for row in CASES]
)
def test_check_eligibility(current: str, target: str, minimum: str, strict: bool, denied: str | None) -> None:  # noqa: FBT001
    reason = check_eligibility(current, target, minimum, strict=strict)
    assert (reason is None) == (denied is None)
    assert (denied or "") in (reason or "")


TAGS = ["1", "2", "10", "-1", "RC2", "alpha", "rc", "rc.1", "rc.9", "rc.10", "rc.x", "rc1", "rc10", "rc2", "rc9"]


@pytest.mark.parametrize(("lower", "higher"), list(itertools.combinations(TAGS, 2)), ids=str)
def test_prerelease_tags_follow_semver_order(lower: str, higher: str) -> None:
    low, high = Version.parse(f"v1.7.0-{lower}"), Version.parse(f"v1.7.0-{higher}")
    assert high.newer_than(low)
    assert low.older_than(high)
    assert not low.newer_than(high)


@pytest.mark.parametrize("number", ["18446744073709551616", "9" * 5000], ids=["65 bits", "5000 digits"])
def test_number_beyond_64_bits_is_text(number: str) -> None:
    assert Version.parse(f"v1.7.0-{number}").newer_than(Version.parse("v1.7.0-18446744073709551615"))


@pytest.mark.parametrize(
    ("candidate", "release", "newer"),
    [
        pytest.param("v1.7.0-rc1", "v1.7.0", False, id="a candidate of the release"),
        pytest.param("v1.7.0-z", "v1.7.0", False, id="z itself"),
        pytest.param("v1.7.0-za", "v1.7.0", True, id="za"),
        pytest.param("v1.7.0-zz1", "v1.7.0", True, id="zz1"),
        pytest.param("v1.7.0-z.1", "v1.7.0", True, id="z.1"),
        pytest.param("v1.7.1-rc1", "v1.7.0", True, id="a later core"),
        pytest.param("v1.7.1-rc1", "v1.7.0+up1", False, id="a release with build metadata"),
    ],
)
def test_prerelease_compared_with_release(candidate: str, release: str, newer: bool) -> None:  # noqa: FBT001
    assert Version.parse(candidate).newer_than(Version.parse(release)) is newer


def test_development_builds_have_no_order() -> None:
    dev, release = Version.parse("master-head"), Version.parse("v1.7.0")
    assert dev.equals(Version.parse("master-head"))
    for one, other in ((dev, release), (release, dev), (dev, Version.parse("v1.7-head"))):
        for compare in (one.equals, one.newer_than, one.older_than):
            with pytest.raises(Incomparable):
                compare(other)


@given(anything, anything, anything, st.booleans())
def test_check_eligibility_never_raises(current: str, target: str, minimum: str, strict: bool) -> None:  # noqa: FBT001
    reason = check_eligibility(current, target, minimum, strict=strict)
    assert reason is None or reason


@given(releases, releases)
def test_releases_have_a_total_order(one: str, other: str) -> None:
    first, second = Version.parse(one), Version.parse(other)
    assert [first.newer_than(second), first.equals(second), first.older_than(second)].count(True) == 1
    assert first.newer_than(second) == second.older_than(first)
