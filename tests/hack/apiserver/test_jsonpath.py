from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.jsonpath import PathError, find

CONDITIONS = [
    {"type": "Available", "status": "True"},
    {"type": "Progressing", "status": "False", "weight": 2},
]
OBJECT: dict[str, Any] = {
    "metadata": {"annotations": {"example.com/a": "x"}, "name": "demo"},
    "status": {"conditions": CONDITIONS, "ports": [1, 2, 3], "empty": None},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".metadata.name", ["demo"], id="a field"),
        pytest.param("metadata.name", ["demo"], id="without a dot in front"),
        pytest.param("$.metadata.name", ["demo"], id="from the root"),
        pytest.param("{.metadata.name}", ["demo"], id="in braces"),
        pytest.param(".", [OBJECT], id="the object itself"),
        pytest.param(".metadata.nosuch.name", [], id="a field that is not there"),
        pytest.param(".status.empty", [None], id="null is a value"),
        pytest.param(r".metadata.annotations.example\.com/a", ["x"], id="an escaped dot"),
        pytest.param(".metadata.annotations['example.com/a']", ["x"], id="a quoted key"),
        pytest.param('.metadata.annotations["example.com/a"]', ["x"], id="a key in double quotes"),
        pytest.param(".status.ports[0]", [1], id="an index"),
        pytest.param(".status.ports[-1]", [3], id="from the end"),
        pytest.param(".status.ports[7]", [], id="past the end"),
        pytest.param(".status.ports[-7]", [], id="before the start"),
        pytest.param(".status.ports[1:]", [2, 3], id="a slice"),
        pytest.param(".status.ports[*]", [1, 2, 3], id="all items"),
        pytest.param(".status.ports.*", [1, 2, 3], id="all items by a star"),
        pytest.param(".metadata.name[0]", [], id="an index into a string"),
        pytest.param(".status.conditions[*].type", ["Available", "Progressing"], id="a field of all items"),
        pytest.param(".status.conditions[?(@.type=='Available')].status", ["True"], id="a filter"),
        pytest.param('.status.conditions[?(@.type == "Progressing")].status', ["False"], id="with spaces"),
        pytest.param(".status.conditions[?(@.type!='Available')].status", ["False"], id="unequal"),
        pytest.param(".status.conditions[?(@.weight)].type", ["Progressing"], id="there"),
        pytest.param(".status.conditions[?(@.weight>=2)].type", ["Progressing"], id="a comparison"),
        pytest.param(".status.conditions[?(@.type>1)].type", [], id="a comparison of different types"),
        pytest.param(".status.conditions[?(@.type=='Nosuch')].status", [], id="a filter that finds nothing"),
        pytest.param(".status.ports[?(@>1)]", [2, 3], id="a filter on the items themselves"),
        pytest.param("..type", ["Available", "Progressing"], id="everywhere"),
    ],
)
def test_a_path_finds_values(path: str, found: list[Any]) -> None:
    assert find(path, OBJECT) == found


def test_recursion_with_a_star_finds_everything() -> None:
    assert find("..*", {"a": {"b": 1}}) == [{"b": 1}, 1]


@pytest.mark.parametrize("path", [".a[", ".a[?(b)]", ".a[?(@.b==nosuch)]", "..", ".a..[0"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(PathError):
        find(path, {})
