from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.keys import Component, JobType
from upgrade_manager.api.names import (
    EVENT_DIGEST,
    MAX_LABEL,
    MAX_NAME,
    ImageReference,
    component_name,
    dns_label,
    event_digest,
    image_display_name,
    image_problem,
    is_namespace,
    is_object_name,
    label_value,
    ledger_config_map,
    repo_service_name,
    restore_vm_config_map,
    safe_concat_name,
)

LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

dns_names = st.from_regex(SUBDOMAIN, fullmatch=True).filter(lambda name: len(name) <= MAX_NAME)
#: Names around the cut, with a dot or a hyphen at any place.
long_names = st.builds(
    lambda head, cut, tail: re.sub(r"-*[.][-.]*", ".", f"a{head}{cut}{tail}z"),
    st.text("abc019-.", min_size=55, max_size=75),
    st.sampled_from(["a", "-", ".", "--", "z9"]),
    st.text("xyz-.", min_size=5, max_size=100),
)
names = dns_names | long_names


@pytest.mark.rule("api: names are shortened as wrangler does")
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param(
            ("hvst-upgrade-x7k2p", "pre-drain", "node-1"), "hvst-upgrade-x7k2p-pre-drain-node-1", id="short: unchanged"
        ),
        pytest.param(
            ("upgrade-to-v1-6-1-for-datacenter-frankfurt", "pre-drain", "rack-07-node-01"),
            "upgrade-to-v1-6-1-for-datacenter-frankfurt-pre-drain-rack-fc1d3",
            id="57th byte a letter: 5 digits",
        ),
        pytest.param(
            ("upgrade-to-v1-6-1-for-datacenter-frankfurt-environment-x", "pre-drain", "node-1"),
            "upgrade-to-v1-6-1-for-datacenter-frankfurt-environment-x-20348f",
            id="57th byte a hyphen: 6 digits",
        ),
        pytest.param(("A_", "", "."), "A_--.", id="invalid: unchanged"),
        pytest.param(("a" * 56 + "B" + "c" * 10,), "a" * 56 + "-ca8f41", id="an upper-case letter at the cut"),
        pytest.param(("a" * 40, "b" * 22), "a" * 40 + "-" + "b" * 22, id="63 bytes: unchanged"),
        pytest.param(("a" * 40, "b" * 23), "a" * 40 + "-" + "b" * 16 + "-a40d5", id="64 bytes: shortened"),
    ],
)
def test_names_are_shortened_like_wrangler(parts: tuple[str, ...], expected: str) -> None:
    assert safe_concat_name(*parts) == expected


@pytest.mark.rule("api: names are shortened as wrangler does")
@given(st.lists(st.text("abcXYZ019-._", max_size=90), min_size=1, max_size=5))
def test_name_is_unchanged_or_has_63_bytes(parts: list[str]) -> None:
    joined = "-".join(parts)
    result = safe_concat_name(*parts)
    if len(joined) <= MAX_LABEL:
        assert result == joined
    else:
        assert len(result) == MAX_LABEL
        assert result[:56] == joined[:56]
        assert re.fullmatch(r"-[0-9a-f]{5,6}", result[56:] if result[56] == "-" else result[57:])


@pytest.mark.rule("api: generated names have at most 63 characters")
@given(names, st.sampled_from(Component), st.none() | st.sampled_from(JobType), names)
def test_component_names_are_valid_object_names(
    plan: str, component: Component, job_type: JobType | None, node: str
) -> None:
    name = component_name(plan, component, job_type=job_type, node=node)
    assert len(name) <= MAX_LABEL
    assert SUBDOMAIN.fullmatch(name)


@given(names, names)
def test_different_names_have_different_label_values(one: str, other: str) -> None:
    assert (one == other) == (label_value(one) == label_value(other))


@pytest.mark.rule("api: generated label values are valid")
@given(st.text(max_size=300) | names)
def test_every_name_has_a_valid_label_value(name: str) -> None:
    value = label_value(name)
    assert len(value) <= MAX_LABEL
    assert LABEL_VALUE.fullmatch(value)
    assert label_value(value) == value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("node-1.example.org", "node-1.example.org", id="a valid one is unchanged"),
        pytest.param("", "", id="empty"),
        pytest.param("n" * 63, "n" * 63, id="63 characters"),
        pytest.param("n" * 56 + "." + "n" * 20, "n" * 56 + "-", id="a dot at the 57th"),
        pytest.param("n" * 56 + "-" + "n" * 20, "n" * 56 + "-", id="a hyphen at the 57th"),
        pytest.param("n" * 55 + ".n" + "n" * 20, "n" * 55 + ".n-", id="a dot at the 56th"),
        pytest.param("n" * 55 + "--" + "n" * 20, "n" * 55 + "--", id="two hyphens at the cut"),
    ],
)
def test_long_label_values_start_like_the_name(name: str, expected: str) -> None:
    value = label_value(name)
    assert value.startswith(expected)
    assert len(value) == min(len(name), MAX_LABEL)
    assert LABEL_VALUE.fullmatch(value)


@pytest.mark.parametrize("name", ["a:b", "ä" * 80])
def test_invalid_name_becomes_a_hash(name: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{63}", label_value(name))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        pytest.param("hvst-upgrade-x7k2p", r"hvst-upgrade-x7k2p-repo", id="a plain name"),
        pytest.param("v1.8.0", r"v1-8-0-repo-[0-9a-f]{6}", id="dots"),
        pytest.param("1.8.0", r"x-1-8-0-repo-[0-9a-f]{6}", id="dots and a leading digit"),
        pytest.param("20260101", r"x-20260101-repo-[0-9a-f]{6}", id="a leading digit"),
        pytest.param("a" * 80, r"a{57}-[0-9a-f]{5}", id="a long name is shortened first"),
        pytest.param("a." * 60 + "b", r"(a-){27}a-[0-9a-f]{6}", id="long and dotted"),
    ],
)
def test_repository_service_names(plan: str, expected: str) -> None:
    assert re.fullmatch(expected, repo_service_name(plan))
    assert len({repo_service_name(plan + end) for end in (".8.0", "-8-0", ".8-0", "-8.0")}) == 4


@given(st.text(max_size=300) | names)
def test_every_name_has_a_valid_dns_label(name: str) -> None:
    label = dns_label(name)
    assert len(label) <= MAX_LABEL
    assert SERVICE.fullmatch(label)
    assert dns_label(label) == label


@pytest.mark.parametrize(("attempt", "end"), [(1, ""), (2, "-a2"), (11, "-a11")])
def test_names_of_later_attempts_have_their_number(attempt: int, end: str) -> None:
    name = component_name("up", Component.NODE_UPGRADE, job_type=JobType.PRE_DRAIN, node="node1", attempt=attempt)
    assert name == f"up-node-upgrade-pre-drain-node1{end}"


@pytest.mark.rule("api: names are PLAN-COMPONENT, and PLAN-COMPONENT-STEP-NODE for node Jobs")
def test_component_names() -> None:
    name = component_name("up", Component.NODE_UPGRADE, job_type=JobType.PRE_DRAIN, node="node1")
    assert name == "up-node-upgrade-pre-drain-node1"
    assert component_name("up", Component.ISO) == "up-iso"
    assert image_display_name("up", "v1.8.0") == "up-v1.8.0"
    assert len(image_display_name("p" * 200, "v1.8.0")) == MAX_LABEL


@pytest.mark.parametrize(
    ("function", "plan", "suffix", "length"),
    [
        (restore_vm_config_map, "up", "-restore-vm", 13),
        (restore_vm_config_map, "p" * 242, "-restore-vm", 253),
        (restore_vm_config_map, "p" * 243, "", 63),
        (ledger_config_map, "up", "-ledger", 9),
        (ledger_config_map, "p" * 246, "-ledger", 253),
        (ledger_config_map, "p" * 247, "", 63),
    ],
)
def test_config_map_is_shortened_only_if_needed(
    function: Callable[[str], str], plan: str, suffix: str, length: int
) -> None:
    name = function(plan)
    assert len(name) == length
    assert not suffix or name == plan + suffix


@given(names)
def test_object_names_are_valid(name: str) -> None:
    assert is_object_name(name)


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "a..b", "-a", "a-", "A", "a b", "a\n", "a" * 254], ids=repr)
def test_invalid_object_names_are_rejected(text: str) -> None:
    assert not is_object_name(text)


@pytest.mark.parametrize(
    ("text", "valid"),
    [("harvester-system", True), ("1", True), ("a.b", False), ("", False), ("a" * 63, True), ("a" * 64, False)],
)
def test_namespace_names(text: str, *, valid: bool) -> None:
    assert is_namespace(text) is valid


@pytest.mark.rule(
    "api: an image without namespace is in harvester-system",
    "api: image may include a namespace",
    "api: isoImageID is the name of an image in harvester-system",
)
@pytest.mark.parametrize(
    ("text", "namespace", "name"),
    [
        ("iso", "harvester-system", "iso"),
        ("harvester-v1.8.0", "harvester-system", "harvester-v1.8.0"),
        ("images/iso", "images", "iso"),
        ("harvester-system/iso", "harvester-system", "iso"),
    ],
)
def test_image_references_are_parsed(text: str, namespace: str, name: str) -> None:
    assert ImageReference.parse(text) == (namespace, name)


@pytest.mark.parametrize(
    "text",
    ["", "/", "/iso", "images/", "a/b/c", "..", "images/..", "../nodes", "my.images/iso", "ISO", "a b", "a" * 254],
    ids=lambda text: text[:12] or "empty",
)
def test_invalid_image_references_are_rejected(text: str) -> None:
    assert ImageReference.parse(text) is None


@given(st.text())
def test_image_references_round_trip(text: str) -> None:
    reference = ImageReference.parse(text)
    assert reference is None or ImageReference.parse("/".join(reference)) == reference


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        pytest.param("iso", "", id="name"),
        pytest.param("harvester-system/iso", "", id="namespace and name"),
        pytest.param("a/b/c", "'a/b/c' is not a valid VirtualMachineImage name. Create a plan", id="malformed"),
        pytest.param("default/iso", "VirtualMachineImage default/iso: the upgrade repository can", id="elsewhere"),
    ],
)
def test_problem_of_an_image_name(image: str, problem: str) -> None:
    found = image_problem(image)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_event_digest_is_of_the_plan_and_what_happened() -> None:
    digests = {
        event_digest("u1", "NodeUpgraded/n1"),
        event_digest("u1", "NodeUpgraded/n2"),
        event_digest("u2", "x\ud800"),
    }
    assert [len(digest) for digest in digests] == [EVENT_DIGEST] * 3
    assert event_digest("u1", "NodeUpgraded/n1") in digests
