from __future__ import annotations

import pytest

from hack.apiserver.schema.names import (
    dns_1035_label,
    dns_label,
    dns_subdomain,
    label_value,
    mask_trailing_dash,
    path_segment,
    qualified_name,
)

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        pytest.param("node-0.example.com", [], id="dots and dashes"),
        pytest.param("a" * 253, [], id="as long as allowed"),
        pytest.param("a" * 254, ["must be no more than 253 characters"], id="too long"),
        pytest.param("Node", [SUBDOMAIN], id="capitals"),
        pytest.param("a_b", [SUBDOMAIN], id="an underscore"),
        pytest.param("-a", [SUBDOMAIN], id="a dash in front"),
        pytest.param("a\n", [SUBDOMAIN], id="a line feed at the end"),
        pytest.param("", [SUBDOMAIN], id="nothing"),
    ],
)
def test_most_names_are_subdomains(name: str, faults: list[str]) -> None:
    assert dns_subdomain(name) == faults


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        pytest.param("harvester-system", [], id="a label"),
        pytest.param("a.b", ["must not contain dots"], id="a dot"),
        pytest.param("A", [LABEL], id="a capital"),
        pytest.param("a" * 64, ["must be no more than 63 characters"], id="too long"),
    ],
)
def test_names_of_namespaces_are_labels(name: str, faults: list[str]) -> None:
    assert dns_label(name) == faults


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        pytest.param("demo-repo", [], id="a label"),
        pytest.param("1-repo", [LABEL_1035], id="a digit in front"),
        pytest.param("a" * 64, ["must be no more than 63 characters"], id="too long"),
    ],
)
def test_names_of_services_begin_with_a_letter(name: str, faults: list[str]) -> None:
    assert dns_1035_label(name) == faults


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        pytest.param("system:node", [], id="a colon"),
        pytest.param("..", ["may not be '..'"], id="the folder above"),
        pytest.param("a/b%", ["may not contain '/'", "may not contain '%'"], id="what a path cannot hold"),
    ],
)
def test_names_of_roles_are_path_segments(name: str, faults: list[str]) -> None:
    assert path_segment(name) == faults


@pytest.mark.parametrize(
    ("key", "faults"),
    [
        pytest.param("app", [], id="no prefix"),
        pytest.param("management.harvesterhci.io/upgrade-plan", [], id="a prefix"),
        pytest.param("/a", ["prefix part must be non-empty"], id="an empty prefix"),
        pytest.param("A/a", ["prefix part " + SUBDOMAIN], id="a bad prefix"),
        pytest.param("a/", ["name part must be non-empty", "name part " + KEY], id="an empty name"),
        pytest.param("a/" + "b" * 64, ["name part must be no more than 63 bytes"], id="too long a name"),
        pytest.param("a b", ["name part " + KEY], id="a space"),
        pytest.param(
            "a/b/c",
            [f"a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
            id="two slashes",
        ),
    ],
)
def test_keys_are_qualified_names(key: str, faults: list[str]) -> None:
    assert qualified_name(key) == faults


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("True", [], id="capitals"),
        pytest.param("a" * 63, [], id="as long as allowed"),
        pytest.param("a" * 64, ["must be no more than 63 bytes"], id="too long"),
        pytest.param("-a", [VALUE], id="a dash in front"),
        pytest.param("a/b", [VALUE], id="a slash"),
    ],
)
def test_values_of_labels(value: str, faults: list[str]) -> None:
    assert label_value(value) == faults


@pytest.mark.parametrize(("prefix", "judged"), [("demo-", "dema"), ("demo", "demo"), ("-", "-")])
def test_a_prefix_may_end_in_a_dash(prefix: str, judged: str) -> None:
    assert mask_trailing_dash(prefix) == judged
