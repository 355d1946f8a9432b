"""Which images may go. What counts is that nothing goes that is needed."""

from __future__ import annotations

import gzip
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.release.image_lists import RETAINED, identities, pack, parse_list, removable, repository_name

DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.mark.rule(
    "pipeline: an image list is plain text, one reference per line",
    "pipeline: a reference may have a tag, a digest, or both",
)
@pytest.mark.parametrize(
    ("body", "references"),
    [
        pytest.param(b"a/b:1\nc/d:2\n", ["a/b:1", "c/d:2"], id="one a line"),
        pytest.param(b"a/b:1\r\nc/d:2\r\n", ["a/b:1", "c/d:2"], id="Windows line ends"),
        pytest.param(b"\xef\xbb\xbfa/b:1\n", ["a/b:1"], id="a byte order mark"),
        pytest.param(b"\n  a/b:1  \n\n", ["a/b:1"], id="blanks"),
        pytest.param(b"# images\na/b:1 # the first\n", ["a/b:1"], id="comments"),
        pytest.param(b"#a/b:1\n", [], id="a line that was taken out"),
        pytest.param(b"a/b:1#the first\n", ["a/b:1"], id="a comment without a blank before it"),
        pytest.param(b"a/b:1\tx\n", ["a/b:1"], id="tabs"),
        pytest.param(b"a/b:1\na/b:1\n", ["a/b:1", "a/b:1"], id="duplicates"),
        pytest.param(b"a/b:1", ["a/b:1"], id="no line end at the end"),
        pytest.param(b"registry:5000/a/b:1\n", ["registry:5000/a/b:1"], id="a port"),
        pytest.param(f"a/b@{DIGEST}\n".encode(), [f"a/b@{DIGEST}"], id="a digest alone"),
        pytest.param(f"r:5000/a/b:1@{DIGEST}\r\n".encode(), [f"r:5000/a/b:1@{DIGEST}"], id="port, tag and digest"),
        pytest.param(f"a/b:1@{DIGEST}\n".encode(), [f"a/b:1@{DIGEST}"], id="tag and digest"),
        pytest.param(b"--all\n-a\n", [], id="no options"),
        pytest.param(b"$(reboot)\n`x`\na;b\n../x\n", [], id="nothing for a shell"),
        pytest.param(b"\xff\xfe\x00\n", [], id="no text"),
        pytest.param(b"<html>\n<body>404</body>\n", [], id="a page"),
        pytest.param(b"a" * 600 + b"\n", [], id="nothing longer than a reference can be"),
        pytest.param(b"", [], id="empty"),
    ],
)
def test_list_is_parsed_line_by_line(body: bytes, references: list[str]) -> None:
    assert parse_list(body) == references


SIX = ["harvester-upgrade", "harvester-upgrade-toolkit", "longhorn-engine", "longhorn-instance-manager"]
SIX += ["mirrored-banzaicloud-fluentd", "mirrored-fluent-fluent-bit"]


@pytest.mark.rule(
    "pipeline: images of the previous list that the current list lacks are removed",
    "pipeline: six image names are retained",
    "pipeline: retained names match the last part of the path",
    "pipeline: a reference may have a registry with a port",
    "pipeline: a reference may have a tag, a digest, or both",
)
@pytest.mark.parametrize(
    ("previous", "current", "removed"),
    [
        pytest.param(["a/b:1"], ["a/b:2"], ["a/b:1"], id="an old tag"),
        pytest.param(["a/b:1"], ["a/b:1"], [], id="still needed"),
        pytest.param(["a/b:1", "a/b:2"], ["a/b:2", "a/b:3"], ["a/b:1"], id="previous less current"),
        pytest.param(["registry:5000/a:1"], ["registry:5000/a:2"], ["registry:5000/a:1"], id="a tag behind a port"),
        pytest.param(["registry:5000/a"], ["registry:5000/a:latest"], [], id="a port and no tag"),
        pytest.param(["registry:5000/a:1"], ["registry:5001/a:1"], ["registry:5000/a:1"], id="another port"),
        pytest.param(["a/b:1", "a/b:1"], ["c/d:1"], ["a/b:1"], id="each once"),
        pytest.param(["docker.io/a/b:1"], ["a/b:1"], [], id="the registry that is meant where none is named"),
        pytest.param(["index.docker.io/a/b:1"], ["docker.io/a/b:1"], [], id="by its other name"),
        pytest.param(["docker.io/library/b:1"], ["b:1"], [], id="and the library"),
        pytest.param(["docker.io/b:1"], ["docker.io/library/b:1"], [], id="either way"),
        pytest.param(["quay.io/a/b:1"], ["a/b:1"], ["quay.io/a/b:1"], id="another registry is another image"),
        pytest.param(["registry:5000/a/b:1"], ["registry:5000/a/b:1"], [], id="a port is not a tag"),
        pytest.param(["localhost/a:1"], ["docker.io/localhost/a:1"], ["localhost/a:1"], id="localhost is a registry"),
        pytest.param(["a/b"], ["a/b:latest"], [], id="no tag means latest"),
        pytest.param([f"a/b:1@{DIGEST}"], ["a/b:1"], [], id="a digest of a tag that is needed"),
        pytest.param([f"a/b:1@{DIGEST}"], [f"a/b:2@{DIGEST}"], [], id="another tag of the same content"),
        pytest.param([f"a/b@{DIGEST}"], [f"a/b:2@{DIGEST}"], [], id="content without a tag"),
        pytest.param([f"a/b:1@{DIGEST}"], [f"a/b:2@{OTHER}"], [f"a/b:1@{DIGEST}"], id="other content, other tag"),
        pytest.param([f"docker.io/rancher/{name}:1" for name in SIX], ["x/y:1"], [], id="the retained stay"),
        pytest.param(["x/longhorn-engine:v1", "x/longhorn-engine:v2"], [], [], id="in all their tags"),
        pytest.param([f"registry:5000/x/longhorn-engine:v1@{DIGEST}"], [], [], id="of any registry, with a digest"),
        pytest.param(["x/longhorn-engine-x:1"], ["a"], ["x/longhorn-engine-x:1"], id="by the whole name only"),
        pytest.param(["longhorn-engine/x:1"], ["a"], ["longhorn-engine/x:1"], id="of the path's last part"),
    ],
)
def test_images_of_the_previous_release_only_are_removable(
    previous: list[str], current: list[str], removed: list[str]
) -> None:
    assert removable(previous, current) == removed


@pytest.mark.rule("pipeline: six image names are retained")
def test_six_names_are_retained() -> None:
    assert sorted(RETAINED) == SIX


@pytest.mark.rule("pipeline: retained names match the last part of the path")
@pytest.mark.parametrize(
    "reference", ["a", "a:1", "registry:5000/a", "registry:5000/b/a:1", f"b/a@{DIGEST}", f"b/a:1@{DIGEST}"]
)
def test_repository_name_is_the_last_part_of_the_path(reference: str) -> None:
    assert repository_name(reference) == "a"


PATHS = st.sampled_from(["b", "a/b", "a/longhorn-engine", "a/b/c"])
REGISTRIES = st.sampled_from(["", "docker.io/", "index.docker.io/", "quay.io/", "registry:5000/", "localhost/"])
TAGS = st.sampled_from(["", ":1", ":2", ":latest"])
DIGESTS = st.sampled_from(["", f"@{DIGEST}", f"@{OTHER}"])
REFERENCES = st.builds("{}{}{}{}".format, REGISTRIES, PATHS, TAGS, DIGESTS)
LISTS = st.lists(REFERENCES, max_size=12)


@pytest.mark.rule("pipeline: images of the previous list that the current list lacks are removed")
@given(LISTS, LISTS)
def test_needed_images_are_never_removable(previous: list[str], current: list[str]) -> None:
    removed = removable(previous, current)
    assert set(removed) <= set(previous)
    assert not set(removed) & set(current)
    needed = {key for reference in current for key in identities(reference)}
    assert [reference for reference in removed if needed & identities(reference)] == []
    assert [reference for reference in removed if repository_name(reference) in RETAINED] == []
    assert removed == sorted(set(removed))


@given(LISTS, LISTS, st.randoms(use_true_random=False))
def test_order_of_the_lists_is_irrelevant(previous: list[str], current: list[str], random: Random) -> None:
    mixed = list(previous)
    random.shuffle(mixed)
    assert removable(mixed, reversed(current)) == removable(previous, current)


@given(LISTS)
def test_packed_list_parses_to_the_same(references: list[str]) -> None:
    packed = pack(references)
    assert parse_list(gzip.decompress(packed)) == references
    assert pack(references) == packed


@given(st.binary(max_size=400))
def test_any_body_is_parsed(body: bytes) -> None:
    assert all(reference and not reference.startswith("-") for reference in parse_list(body))
