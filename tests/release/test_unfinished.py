from __future__ import annotations

import json

import pytest

from tests.support.cluster.cluster_reader import named
from upgrade_manager.api.keys import ANNOTATION_UNFINISHED_UPGRADE
from upgrade_manager.kube.objects import Object
from upgrade_manager.release.unfinished import UnfinishedUpgrade

BEGUN = UnfinishedUpgrade(previous="v1.7.1", release="v1.8.0", os="Harvester v1.8.0")


def annotated(value: str) -> Object:
    return {"metadata": {"name": "local", "annotations": {ANNOTATION_UNFINISHED_UPGRADE: value}}}


def node(name: str, os: str) -> Object:
    return named(name, status={"nodeInfo": {"osImage": os}})


NODES = [node("n3", "Harvester v1.7.1"), node("n1", "Harvester v1.8.0"), node("n2", "")]


def test_annotation_is_read_as_written() -> None:
    assert UnfinishedUpgrade.of(annotated(BEGUN.annotation())) == BEGUN


@pytest.mark.parametrize(
    "value",
    ["", "{", "[]", "null", "7", "{}", "[" * 100_000, json.dumps({"previous": "v1", "release": "v2", "os": 3})],
    ids=["empty", "broken", "list", "null", "number", "no fields", "deep", "wrong type"],
)
def test_invalid_annotation_is_not_an_upgrade(value: str) -> None:
    assert UnfinishedUpgrade.of(annotated(value)) is None
    assert UnfinishedUpgrade.of(None) is None
    assert UnfinishedUpgrade.of({"metadata": {"name": "local"}}) is None


def test_nodes_without_the_release_are_behind() -> None:
    assert BEGUN.behind(NODES) == ["n2", "n3"]


@pytest.mark.rule("nodes: while nodes are behind, only the release that was begun or a patch of it is accepted")
@pytest.mark.parametrize(
    ("begun", "target", "is_accepted", "is_name_accepted"),
    [
        pytest.param("v1.8.0", "v1.8.0", True, True, id="the release"),
        pytest.param("v1.8.0", "1.8.0", True, True, id="without v"),
        pytest.param("v1.8.0", "v1.8.3", True, True, id="a patch"),
        pytest.param("v1.8.3", "v1.8.0", False, False, id="an older patch"),
        pytest.param("v1.8.0", "v1.9.0", False, False, id="the next minor"),
        pytest.param("v1.8.0", "v2.8.0", False, False, id="the next major"),
        pytest.param("v1.8.0", "v1.7.1", False, False, id="the release before"),
        pytest.param("v1.8.0-rc1", "v1.8.0", True, True, id="from a prerelease"),
        pytest.param("v1.8.0", "v1.8.0-rc1", False, False, id="back to a prerelease"),
        pytest.param("v1.8.0", "master-head", False, True, id="a development build"),
        pytest.param("master-head", "master-head", True, True, id="the same development build"),
        pytest.param("v1.8.0", "", False, True, id="unknown"),
    ],
)
def test_only_the_release_or_its_patch_is_accepted(
    begun: str, target: str, *, is_accepted: bool, is_name_accepted: bool
) -> None:
    unfinished = UnfinishedUpgrade(previous="v1.7.1", release=begun, os="Harvester v1.8.0")
    assert bool(unfinished.refusal(target, NODES)) != is_accepted
    assert bool(unfinished.refusal(target, NODES, is_name=True)) != is_name_accepted
    assert unfinished.refusal(target, NODES[1:2]) == ""
