from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.server.kube_server import node
from upgrade_manager.kube.objects import Object, name, uid
from upgrade_manager.kube.store import REMEMBERED, Change, ChangeKind, Store

ADDED, UPDATED, DELETED = ChangeKind.ADDED, ChangeKind.UPDATED, ChangeKind.DELETED


def store_of(*objs: Object) -> Store:
    store = Store()
    store.replace(objs, "5")
    return store


def summary(changes: list[Change]) -> list[tuple[ChangeKind, str]]:
    return [(change.kind, f"{name(change.obj)}@{change.obj['metadata']['resourceVersion']}") for change in changes]


def test_objects_are_found_by_key_and_listed_in_order() -> None:
    other = node("a")
    other["metadata"]["namespace"] = "ns"
    store = store_of(node("b"), other, node("a"))
    assert len(store) == 3
    assert store.get("a", "ns") is other
    assert store.get("a", "elsewhere") is None
    assert [name(obj) for obj in store.list()] == ["a", "b", "a"]
    store.put(node("0", 9))
    assert [name(obj) for obj in store.list()] == ["0", "a", "b", "a"]
    assert store.resource_version == "5"


def test_replace_returns_deletions_first_and_skips_unchanged() -> None:
    store = store_of(node("a", 1), node("b", 2), node("c", 3))
    changes = store.replace([node("d", 9), node("b", 8), node("c", 3)], "10")
    assert summary(changes) == [(DELETED, "a@1"), (ADDED, "d@9"), (UPDATED, "b@8")]
    assert changes[2].old == node("b", 2)
    assert store.resource_version == "10"


def test_new_uid_is_a_deletion_and_an_addition() -> None:
    store = store_of(node("a", 1), node("b", 2))
    changes = store.replace([node("c", 9), node("a", 8, uid="new"), node("b", 2)], "10")
    assert summary(changes) == [(DELETED, "a@1"), (ADDED, "c@9"), (ADDED, "a@8")]
    assert uid(changes[0].obj) == "uid-a"
    changes = store.put(node("a", 11, uid="newer"))
    assert summary(changes) == [(DELETED, "a@8"), (ADDED, "a@11")]


def test_put_and_delete_return_what_changed() -> None:
    store = store_of()
    assert summary(store.put(node("a", 6))) == [(ADDED, "a@6")]
    assert store.put(node("a", 6)) == []
    assert summary(store.put(node("a", "")) + store.put(node("a", ""))) == [(UPDATED, "a@")] * 2
    assert summary(store.put(node("a", 7))) == [(UPDATED, "a@7")]
    assert summary(store.delete(node("a", 8))) == [(DELETED, "a@8")]
    assert store.delete(node("a", 8)) == []


CALLS: list[str] = []


def versioned_name(obj: Object) -> str:
    CALLS.append(f"{name(obj)}@{obj['metadata']['resourceVersion']}")
    return CALLS[-1]


class TestDerive:
    @pytest.fixture(autouse=True)
    def _no_calls(self) -> None:
        CALLS.clear()

    def test_results_are_ordered_and_computed_once(self) -> None:
        store = store_of(node("b", 1), node("a", 2))
        assert [store.derive(versioned_name), store.derive(versioned_name)] == [["a@2", "b@1"]] * 2
        assert sorted(CALLS) == ["a@2", "b@1"]

    @pytest.mark.parametrize(
        ("change", "results", "calls"),
        [
            pytest.param(lambda s: s.put(node("a", 8)), ["a@8", "b@2"], ["a@8"], id="updated"),
            pytest.param(lambda s: s.put(node("a", 8, uid="x")), ["a@8", "b@2"], ["a@8"], id="another uid"),
            pytest.param(lambda s: s.put(node("c", 8)), ["a@1", "b@2", "c@8"], ["c@8"], id="added"),
            pytest.param(lambda s: s.delete(node("a", 8)), ["b@2"], [], id="deleted"),
            pytest.param(lambda s: s.replace([node("b", 2), node("c", 8)], "9"), ["b@2", "c@8"], ["c@8"], id="relist"),
            pytest.param(lambda s: s.put(node("a", 1)), ["a@1", "b@2"], [], id="the same version"),
        ],
    )
    def test_only_changed_objects_are_computed_again(
        self, change: Callable[[Store], object], results: list[str], calls: list[str]
    ) -> None:
        store = store_of(node("a", 1), node("b", 2))
        store.derive(versioned_name)
        CALLS.clear()
        change(store)
        assert (store.derive(versioned_name), CALLS) == (results, calls)

    def test_results_of_two_functions_are_kept_apart(self) -> None:
        store = store_of(node("a", 1))
        assert (store.derive(name), store.derive(uid)) == (["a"], ["uid-a"])

    def test_list_is_the_same_until_a_result_differs(self) -> None:
        store = store_of(node("a", 1), node("b", 2))
        first = store.derive(name)
        store.put(node("a", 8))
        assert store.derive(name) is first
        versions = store.derive(versioned_name)
        store.put(node("a", 9))
        assert store.derive(versioned_name) == ["a@9", "b@2"]
        assert versions == ["a@8", "b@2"]

    def test_one_result_is_computed_once(self) -> None:
        store = store_of(node("a", 1), node("b", 2))
        assert [store.derive_one(versioned_name, ("", "b")) for _ in range(2)] == ["b@2"] * 2
        assert CALLS == ["b@2"]
        assert store.derive(versioned_name) == ["a@1", "b@2"]


def color(obj: Object) -> str:
    return str((obj["metadata"].get("labels") or {}).get("color", ""))


def colored(value: str, version: int, *, of: str = "a", **more: str) -> Object:
    obj = node(of, version, **more)
    return {**obj, "metadata": {**obj["metadata"], "labels": {"color": value}}}


class TestIndex:
    @pytest.mark.parametrize(
        ("change", "red", "blue"),
        [
            pytest.param(lambda s: s.put(colored("blue", 8)), ["b"], ["a"], id="updated"),
            pytest.param(lambda s: s.put(colored("blue", 8, uid="x")), ["b"], ["a"], id="another uid"),
            pytest.param(lambda s: s.put(colored("red", 8, of="0")), ["0", "a", "b"], [], id="added"),
            pytest.param(lambda s: s.delete(colored("blue", 8)), ["b"], [], id="deleted, with another last state"),
            pytest.param(lambda s: s.replace([colored("blue", 8)], "9"), [], ["a"], id="relist"),
            pytest.param(lambda s: s.replace([], "9"), [], [], id="all deleted"),
        ],
    )
    def test_keys_are_found_by_value(self, change: Callable[[Store], object], red: list[str], blue: list[str]) -> None:
        store = store_of(colored("red", 2, of="b"), colored("red", 1))
        assert [key for _, key in store.keys_by(color, "red")] == ["a", "b"]
        change(store)
        found = [[key for _, key in store.keys_by(color, value)] for value in ("red", "blue")]
        assert found == [red, blue]
        assert list(map(name, store.list_by(color, "red"))) == red

    def test_first_list_is_indexed(self) -> None:
        store = Store()
        assert store.keys_by(color, "red") == []
        store.replace([colored("red", 1)], "5")
        assert store.keys_by(color, "red") == [("", "a")]


class TestTouched:
    @pytest.mark.parametrize(
        ("change", "touched"),
        [
            pytest.param(lambda _: None, [], id="nothing"),
            pytest.param(lambda s: s.put(node("a", 1)), [], id="the same version"),
            pytest.param(lambda s: s.put(node("a", 8)), ["a@1", "a@8"], id="updated: both states"),
            pytest.param(lambda s: s.put(node("b", 8)), ["b@8"], id="added"),
            pytest.param(lambda s: s.delete(node("a", 8)), ["a@1"], id="deleted: the state that was stored"),
            pytest.param(lambda s: s.replace([node("b", 8)], "9"), ["a@1", "b@8"], id="relist"),
        ],
    )
    def test_states_before_and_after_changes_are_returned(
        self, change: Callable[[Store], object], touched: list[str]
    ) -> None:
        store = store_of(node("a", 1))
        mark = store.mark()
        change(store)
        assert list(map(versioned_name, store.touched_since(mark) or [])) == touched
        assert store.touched_since(store.mark()) == []

    def test_states_are_remembered_from_the_first_mark_on(self) -> None:
        store = store_of(node("a", 1))
        assert store.touched_since(0) is None
        assert store.mark() == 0

    def test_forgotten_states_are_not_returned(self) -> None:
        store = store_of(node("a", 1))
        mark = store.mark()
        for version in range(REMEMBERED // 2):
            store.put(node("a", version + 2))
        assert len(store.touched_since(mark) or ()) == REMEMBERED
        store.put(node("b", 1))
        assert store.touched_since(mark) is None
