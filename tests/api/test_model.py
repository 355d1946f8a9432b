from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from upgrade_manager.api.model import ApiModel, NamedObject, json_field, members_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Board(ApiModel):
    """A model inside another one."""

    color: str = json_field(default="white", description="Color.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf(NamedObject):
    """A model with a field of each type."""

    row_count: int = json_field(default=3, description="Rows.")
    is_full: bool = json_field(default=False, description="Full.")
    upper: int | None = json_field(default=None, description="Upper limit.")
    anything: Any = json_field(default=None, alias="anyThing", description="Anything.")
    words: list[str] = json_field(default_factory=list, description="Words.")
    sizes: dict[str, int] = json_field(default_factory=dict, description="Sizes.")
    below: list[Board] = json_field(default_factory=list, description="Boards.", required=True)
    top: Board = json_field(default_factory=Board, description="Board.")


FULL: dict[str, Any] = {
    "kind": "Shelf",
    "name": "",
    "rowCount": 0,
    "isFull": True,
    "upper": 7,
    "anyThing": [1, None],
    "words": ["x", ""],
    "sizes": {"a": 1},
    "below": [{"color": "red"}, {}],
    "top": {"color": "blue", "unknown": 1},
    "unknown": 1,
}


def test_fields_are_read_by_their_json_names_and_types() -> None:
    assert Shelf.read(FULL) == Shelf(
        kind="Shelf",
        name="",
        row_count=0,
        is_full=True,
        upper=7,
        anything=[1, None],
        words=["x", ""],
        sizes={"a": 1},
        below=[Board(color="red"), Board()],
        top=Board(color="blue"),
    )


@pytest.mark.parametrize("value", [None, 1.5, (), "full", 1, True], ids=repr)
@pytest.mark.parametrize(
    ("name", "type_"), [("kind", str), ("rowCount", int), ("isFull", bool), ("upper", int), ("words", list),
                        ("sizes", dict), ("below", list), ("top", dict)],
)  # fmt: skip
def test_value_of_another_type_reads_as_absent(name: str, type_: type, value: object) -> None:
    assert (Shelf.read({name: value}) == Shelf()) is (type(value) is not type_)


@pytest.mark.parametrize("value", [None, "Shelf", 1, [FULL], {1: 2}], ids=repr)
def test_value_that_is_not_an_object_reads_as_empty(value: object) -> None:
    found = Shelf.read(value)
    assert found == Shelf()
    assert (found.row_count, found.top.color) == (3, "white")


def test_items_of_another_type_are_left_out() -> None:
    found = Shelf.read({"words": ["x", 1, None, "y"], "sizes": {"a": 1, "b": "2", "c": True}, "below": [1]})
    assert (found.words, found.sizes, found.below) == (["x", "y"], {"a": 1}, [Board()])


def test_members_are_the_fields_in_order() -> None:
    members = members_of(Shelf)
    names = ["kind", "namespace", "name", "rowCount", "isFull", "upper", "anyThing", "words", "sizes", "below", "top"]
    assert [member.json_name for member in members] == names
    assert [member.json_name for member in members if member.json.required] == ["kind", "name", "below"]
    assert {member.type for member in members[:3]} == {str}
