from __future__ import annotations

import pytest

from upgrade_manager.api.image_name import ImageName, digest_version, is_allowed, is_prefix, is_repository, is_tag
from upgrade_manager.api.names import label_value

DIGEST = "sha256:" + "0123456789abcdef" * 4


def test_image_is_written_as_it_is_parsed() -> None:
    for text in ("me/toolkit", f"registry:5000/me/toolkit@{DIGEST}"):
        assert str(ImageName.parse(text)) == text


@pytest.mark.rule("workloads: a prefix allows the whole repository, or what follows it after / or : or @")
@pytest.mark.parametrize(
    ("repository", "prefix", "allowed"),
    [
        pytest.param("me/toolkit", "me/toolkit", True, id="the whole repository"),
        pytest.param("me/toolkit", "me", True, id="up to a slash"),
        pytest.param("registry:5000/me/toolkit", "registry", True, id="up to a port"),
        pytest.param(f"me/toolkit@{DIGEST}", "me/toolkit", True, id="up to a digest"),
        pytest.param("me/toolkit-evil", "me/toolkit", False, id="a longer name"),
        pytest.param("me-evil/toolkit", "me", False, id="a longer namespace"),
        pytest.param("registry.evil.org/me", "registry", False, id="a longer registry"),
        pytest.param("evil.org/me/toolkit", "me/toolkit", False, id="another registry"),
        pytest.param("me", "me/toolkit", False, id="a shorter repository"),
        pytest.param("me/toolkit", "", False, id="an empty prefix"),
    ],
)
def test_prefix_ends_at_a_separator(repository: str, prefix: str, *, allowed: bool) -> None:
    assert is_allowed(repository, [prefix]) is allowed
    assert is_allowed(repository, ["other", prefix]) is allowed
    assert not is_allowed(repository, [])


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("registry.local:5000", True),
        ("Registry.local", True),
        ("me", True),
        ("registry.local:5000/me/toolkit", True),
        ("me/", False),
        ("me:", False),
        ("me/toolkit:v1", False),
        ("me@", False),
        ("", False),
        ("a b", False),
        ("a" * 300, False),
    ],
)
def test_prefix_is_a_registry_or_part_of_a_path(text: str, *, valid: bool) -> None:
    assert is_prefix(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [("v1.8.0", True), ("_x", True), ("v1+rc", False), ("", False), ("a" * 129, False), ("-x", False)],
)
def test_tag_is_one_that_registries_accept(text: str, *, valid: bool) -> None:
    assert is_tag(text) is valid


@pytest.mark.rule("workloads: the version of a SUC Plan with a digest is sha256- and its first 12 digits")
def test_version_of_a_digest_is_a_label_value() -> None:
    assert digest_version(DIGEST) == "sha256-0123456789ab" == label_value(digest_version(DIGEST))


def test_repository_has_no_tag() -> None:
    assert is_repository("me/toolkit")
    assert not is_repository("me/toolkit:v1")
