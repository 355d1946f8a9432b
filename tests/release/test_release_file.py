"""The release file, as builds make it and as an enemy might."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.text import bounded_line
from upgrade_manager.release.errors import BadRepository
from upgrade_manager.release.release_file import SIZE_LIMIT, parse_release

WHERE = "http://up-repo.harvester-system/harvester-iso/harvester-release.yaml"
GOOD = """\
harvester: v1.7.0
harvesterChart: 1.7.0
os: Harvester v1.7.0
kubernetes: v1.33.5+rke2r1
rancher: v2.12.2
monitoringChart: 107.1.0+up69.8.2
minUpgradableVersion: 'v1.6.0'
"""
NEEDED = "harvester: v1.7.0\nos: Harvester v1.7.0\nkubernetes: v1.33.5+rke2r1\nrancher: v2.12.2\n"


def read(text: str | bytes) -> dict[str, str]:
    return parse_release(text if isinstance(text, bytes) else text.encode(), where=WHERE)


def refusal(text: str | bytes) -> str:
    with pytest.raises(BadRepository) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.rule("api: releaseMetadata has the release's members, of seven known ones")
def test_known_keys_are_returned() -> None:
    assert read(GOOD) == {
        "harvester": "v1.7.0",
        "harvesterChart": "1.7.0",
        "os": "Harvester v1.7.0",
        "kubernetes": "v1.33.5+rke2r1",
        "rancher": "v2.12.2",
        "monitoringChart": "107.1.0+up69.8.2",
        "minUpgradableVersion": "v1.6.0",
    }


@pytest.mark.rule("pipeline: MetadataPopulate completes when the release file is valid")
@pytest.mark.parametrize(
    "more",
    [
        pytest.param("kubevirt: 1.5.2-150700.3.5.2\n", id="another text"),
        pytest.param("installer: 4820193\n", id="a commit of digits only is a number"),
        pytest.param("installer: 12e4567\n", id="and one with an e is a large number"),
        pytest.param("rancherDependencies: {fleet: {chart: 1, app: 2}}\n", id="a mapping"),
        pytest.param("built: 2026-02-30\n", id="a date that does not exist"),
        pytest.param("built: !build x\n", id="an unknown type"),
        pytest.param(f"digest: {'9' * 9000}\n", id="a number longer than Python reads"),
        pytest.param("? [a, b]\n: c\n", id="a key that is a list"),
        pytest.param("? {a: b}\n: c\n", id="a key that is a mapping"),
        pytest.param("17: x\ntrue: y\n~: z\n2026-01-01: d\n", id="keys that are no text"),
        pytest.param("installer: a\ninstaller: b\n", id="another key twice"),
        pytest.param("minUpgradableVersion: ''\n", id="no minimum"),
        pytest.param("minUpgradableVersion:\n", id="a minimum that is null"),
        pytest.param("monitoringChart: ~\n", id="a chart that is null"),
        pytest.param("x: &anchor y\n", id="an anchor to which nothing refers"),
    ],
)
def test_other_keys_may_have_any_value(more: str) -> None:
    assert read(NEEDED + more) == read(NEEDED)


def test_byte_order_mark_and_crlf_are_accepted() -> None:
    assert read(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()) == read(GOOD)


@pytest.mark.rule("pipeline: invalid YAML is Degraded with the cause")
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("# nothing\n", "is empty", id="a comment only"),
        pytest.param("- a\n- b\n", "is a list, not a mapping", id="a list"),
        pytest.param("just words\n", "is 'just words', not a mapping", id="a text"),
        pytest.param("42\n", "is '42' (a number in YAML), not a mapping", id="a number"),
        pytest.param("<html><body>404</body></html>", "not a mapping", id="a page of HTML"),
        pytest.param("a: b: c\n", "is not YAML (line 1)", id="no YAML"),
        pytest.param("harvester: v1\n  os: x\n", "is not YAML (line 2)", id="no YAML, further down"),
        pytest.param(b"\xff\xfe\x00\xd8", "is not YAML", id="no text"),
        pytest.param(b"harvester: \x00\x01\n", "is not YAML", id="control characters"),
        pytest.param(GOOD + "---\n" + GOOD, "is not YAML", id="two documents"),
        pytest.param("[" * 1_000, "is not YAML", id="nested deeper than can be read"),
        pytest.param("a: &a [*a]\n", "is not YAML (line 1)", id="a list that holds itself"),
    ],
)
def test_invalid_file_is_refused(text: str | bytes, cause: str) -> None:
    message = refusal(text)
    assert message.startswith(WHERE)
    assert cause in message


def replaced(key: str, *lines: str) -> str:
    """Return a valid file with other lines for a key."""
    return "\n".join([*(line for line in GOOD.splitlines() if not line.startswith(f"{key}:")), *lines])


@pytest.mark.rule("pipeline: incomplete YAML is Degraded with the cause")
@pytest.mark.parametrize("key", ["harvester", "os", "kubernetes", "rancher"])
@pytest.mark.parametrize("values", [[], [""], ["~"], ["null"], ["''"], ['""']], ids=str)
def test_missing_or_empty_key_is_refused(key: str, values: list[str]) -> None:
    lines = [f"{key}: {value}" for value in values]
    assert f": {key} is missing; the ISO is corrupt" in refusal(replaced(key, *lines))


BAD_VALUES = {
    "a number": "1.10",
    "a whole number": "17",
    "a hexadecimal number as long as a book": "0x" + "f" * 20_000,
    "a boolean": "true",
    "a date": "2026-01-01",
    "a list": "[v1.7.0]",
    "a mapping": "{v: 1}",
    "a way up the tree": '"../../etc/passwd"',
    "a slash": "a/b",
    "a template of Go": '"{{ .Values.x }}"',
    "a template of a shell": '"${HOME}"',
    "a command": '"$(reboot)"',
    "backquotes": '"`reboot`"',
    "a quote": '"v1\'"',
    "a line break": '"v1\\nharvester: v2"',
    "a line break at the end": '"v1.7.0\\n"',
    "a control character": '"v1\\x07"',
    "a NUL": '"v1\\0"',
    "a letter that looks like another": '"v1.7.\u0660"',
    "an option": '"-v1"',
    "a blank at the end": '"v1.7.0 "',
    "a text of 20,000 characters": "v" * 20_000,
    "longer than a label's value": "v" * 64,
}


@pytest.mark.parametrize("key", ["harvester", "kubernetes", "rancher", "harvesterChart", "minUpgradableVersion"])
@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
def test_invalid_version_is_refused(key: str, value: str) -> None:
    message = refusal(replaced(key, f"{key}: {value}"))
    assert f"{key} is " in message
    assert "not a valid version" in message
    assert len(message) < 400
    assert bounded_line(message) == message


def test_os_name_may_have_spaces_but_no_template() -> None:
    assert read(replaced("os", "os: Harvester v1.7.0 (dev)"))["os"] == "Harvester v1.7.0 (dev)"
    assert "os is 'Harvester {{ x }}', not a valid name" in refusal(replaced("os", "os: 'Harvester {{ x }}'"))


def test_duplicate_key_is_refused() -> None:
    assert "harvester is set 2 times" in refusal(GOOD + "harvester: v1.8.0\n")


def test_all_errors_are_reported_at_once() -> None:
    message = refusal("harvester: 1.7\nos: a/b\n")
    assert [part in message for part in ("harvester is '1.7'", "os is 'a/b'", "kubernetes is missing")] == [True] * 3


def bomb(join: str) -> str:
    """Ten levels of nine references each: more nodes than memory holds, in a few lines."""
    levels = [f"a{level}: &a{level} {join % ', '.join([f'*a{level - 1}'] * 9)}" for level in range(1, 11)]
    return NEEDED + "\n".join(["a0: &a0 {x: y}", *levels])


@pytest.mark.parametrize("text", [bomb("[%s]"), bomb("{<<: [%s]}")], ids=["in lists", "merged"])
def test_aliases_are_refused_before_expansion(text: str) -> None:
    assert "is not YAML (line 6)" in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"z: [{'a,' * 5_000}a]\n", id="a long list"),
        pytest.param("z: 1" + ":59" * 20_000, id="a number to the base of sixty"),
        pytest.param("z: " + "{a: " * 1_000, id="nested mappings"),
        pytest.param("".join(f"k{number}: v\n" for number in range(3000)), id="many keys"),
    ],
)
def test_a_large_malformed_file_is_refused(text: str) -> None:
    with pytest.raises(BadRepository):
        read(text.encode()[:SIZE_LIMIT])


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_content_is_parsed_or_refused(body: bytes) -> None:
    with pytest.raises(BadRepository):
        parse_release(body, where=WHERE)
