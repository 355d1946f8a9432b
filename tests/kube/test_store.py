from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kube_server import node
from upgrade_manager.kube.objects import Object, labels, name, uid
from upgrade_manager.kube.store import Change, ChangeKind, Store

if TYPE_CHECKING:
    from collections.abc import Callable

ADDED, UPDATED, DELETED = ChangeKind.ADDED, ChangeKind.UPDATED, ChangeKind.DELETED


def store(*objs: Object) -> Store:
    made = Store(indexers={"app": lambda obj: filter(None, [labels(obj).get("app")])})
    made.replace(objs, "5")
    return made


def app(obj_name: str, version: int, value: str) -> Object:
    obj = node(obj_name, version)
    obj["metadata"]["labels"] = {"app": value} if value else {}
    return obj


def told(changes: list[Change]) -> list[tuple[ChangeKind, str]]:
    return [(change.kind, f"{name(change.obj)}@{change.obj['metadata']['resourceVersion']}") for change in changes]


def test_objects_are_found_by_name_and_namespace_and_listed_in_order() -> None:
    other = node("a")
    other["metadata"]["namespace"] = "ns"
    found = store(node("b"), other, node("a"))
    assert len(found) == 3
    assert found.get("a", "ns") is other
    assert found.get("a", "elsewhere") is None
    assert [name(obj) for obj in found.list()] == ["a", "b", "a"]
    found.put(node("0", 9))
    assert [name(obj) for obj in found.list()] == ["0", "a", "b", "a"]
    assert found.resource_version == "5"


def test_a_relist_tells_deletions_before_the_rest_and_skips_what_is_known() -> None:
    found = store(node("a", 1), node("b", 2), node("c", 3))
    changes = found.replace([node("d", 9), node("b", 8), node("c", 3)], "10")
    assert told(changes) == [(DELETED, "a@1"), (ADDED, "d@9"), (UPDATED, "b@8")]
    assert changes[0].tombstone
    assert changes[2].old == node("b", 2)
    assert found.resource_version == "10"


def test_another_uid_is_a_deletion_and_an_addition_in_a_list_and_in_a_watch() -> None:
    found = store(node("a", 1), node("b", 2))
    changes = found.replace([node("c", 9), node("a", 8, uid="new"), node("b", 2)], "10")
    assert told(changes) == [(DELETED, "a@1"), (ADDED, "c@9"), (ADDED, "a@8")]
    assert (uid(changes[0].obj), changes[0].tombstone) == ("uid-a", True)
    changes = found.put(node("a", 11, uid="newer"))
    assert told(changes) == [(DELETED, "a@8"), (ADDED, "a@11")]
    assert not changes[0].tombstone


def test_a_watch_adds_updates_and_deletes() -> None:
    found = store()
    assert told(found.put(node("a", 6))) == [(ADDED, "a@6")]
    assert found.put(node("a", 6)) == []
    assert told(found.put(node("a", 7))) == [(UPDATED, "a@7")]
    assert told(found.drop(node("a", 8))) == [(DELETED, "a@8")]
    assert found.drop(node("a", 8)) == []


def test_objects_without_versions_always_count_as_changed() -> None:
    found = store(node("a", ""))
    assert told(found.put(node("a", ""))) == [(UPDATED, "a@")]


def test_indexes_follow_and_forget() -> None:
    found = store(app("a", 1, "x"), app("b", 2, "x"), app("c", 3, ""))
    assert [name(obj) for obj in found.by_index("app", "x")] == ["a", "b"]
    found.put(app("a", 4, "y"))
    found.put(app("b", 5, "x"))
    found.drop(app("b", 6, "x"))
    assert found.by_index("app", "x") == []
    assert [name(obj) for obj in found.by_index("app", "y")] == ["a"]
    assert found._indexes == {"app": {"y": {("", "a")}}}
    with pytest.raises(KeyError):
        found.by_index("none", "x")


steps = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "x", "y"]), st.sampled_from("pd")), max_size=30)


@given(steps)
def test_indexes_always_agree_with_the_objects(history: list[tuple[str, str, str]]) -> None:
    found = store()
    for version, (which, value, what) in enumerate(history):
        obj = app(which, version + 1, value)
        found.put(obj) if what == "p" else found.drop(obj)
        for wanted in ("x", "y"):
            expected = [obj for obj in found.list() if labels(obj).get("app") == wanted]
            assert found.by_index("app", wanted) == expected


class TestMade:
    """What is made of objects: once for each version of each."""

    @pytest.fixture(autouse=True)
    def _asked(self) -> None:
        ASKED.clear()

    def test_it_comes_in_the_order_of_the_list_and_nothing_is_asked_twice(self) -> None:
        found = store(node("b", 1), node("a", 2))
        assert [found.made(told_of), found.made(told_of)] == [["a@2", "b@1"]] * 2
        assert sorted(ASKED) == ["a@2", "b@1"]

    @pytest.mark.parametrize(
        ("change", "made", "asked"),
        [
            pytest.param(lambda s: s.put(node("a", 8)), ["a@8", "b@2"], ["a@8"], id="changed"),
            pytest.param(lambda s: s.put(node("a", 8, uid="x")), ["a@8", "b@2"], ["a@8"], id="another of its name"),
            pytest.param(lambda s: s.put(node("c", 8)), ["a@1", "b@2", "c@8"], ["c@8"], id="added"),
            pytest.param(lambda s: s.drop(node("a", 8)), ["b@2"], [], id="deleted"),
            pytest.param(lambda s: s.replace([node("b", 2), node("c", 8)], "9"), ["b@2", "c@8"], ["c@8"], id="relist"),
            pytest.param(lambda s: s.put(node("a", 1)), ["a@1", "b@2"], [], id="the same version once more"),
        ],
    )
    def test_only_what_has_changed_is_asked_again(
        self, change: Callable[[Store], object], made: list[str], asked: list[str]
    ) -> None:
        found = store(node("a", 1), node("b", 2))
        found.made(told_of)
        ASKED.clear()
        change(found)
        assert (found.made(told_of), ASKED) == (made, asked)

    def test_what_two_functions_make_is_kept_apart(self) -> None:
        found = store(node("a", 1))
        assert (found.made(name), found.made(uid)) == (["a"], ["uid-a"])


ASKED: list[str] = []


def told_of(obj: Object) -> str:
    ASKED.append(f"{name(obj)}@{obj['metadata']['resourceVersion']}")
    return ASKED[-1]
