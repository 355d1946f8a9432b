from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.server.kube_server import node
from upgrade_manager.kube.objects import Object, name, uid
from upgrade_manager.kube.store import Change, ChangeKind, Store

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
