"""Lists that arrive in pieces."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.list_decoder import ListDecoder

ITEMS = [{"a": "é€😀"}, {"b": [1, {"c": None}], "n": -1.5e3}, {}]
META: dict[str, Any] = {"resourceVersion": "7", "remainingItemCount": 12}
LISTS = {
    "typed, as of kube-apiserver": json.dumps({"kind": "NodeList", "metadata": META, "items": ITEMS}),
    "custom resources": json.dumps({"items": ITEMS, "kind": "NodeList", "metadata": META}, separators=(",", ":")),
    "indented": json.dumps({"kind": "NodeList", "items": ITEMS, "metadata": META}, indent=2, ensure_ascii=False) + "\n",
}


def decoded(*pieces: bytes) -> tuple[list[Any], Any]:
    decoder = ListDecoder()
    items = [item for piece in pieces for item in decoder.feed(piece)]
    return items, decoder.finish()


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS.keys())
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_list_is_the_same_in_pieces_of_any_size(text: str, size: int) -> None:
    body = text.encode()
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert decoded(*pieces) == (ITEMS, {"kind": "NodeList", "metadata": META})


def test_numbers_and_words_may_be_split() -> None:
    text = b'{"count":12345,"more":true,"items":[]}'
    for position in range(len(text)):
        assert decoded(text[:position], text[position:]) == ([], {"count": 12345, "more": True})


def test_item_is_returned_with_the_piece_that_completes_it() -> None:
    decoder = ListDecoder()
    assert decoder.feed(b'{"items":[{"a":1},{"b"') == [{"a": 1}]
    assert decoder.feed(b":2}") == []
    assert decoder.feed(b",") == [{"b": 2}]
    assert decoder.feed(b"]}") == []
    assert decoder.finish() == {}


BAD: dict[str, tuple[bytes, ...]] = {
    "nothing": (),
    "blanks": (b" \n",),
    "HTML": (b"<html>upstream timed out</html>",),
    "an array": (b"[]",),
    "cut off in an item": (b'{"items":[{"a":',),
    "cut off after the items": (b'{"items":[{}]',),
    "cut off in a field": (b'{"kind": "Node',),
    "two objects": (b'{"items":[]}{}',),
    "an item that is a number": (b'{"items":[1,{}]}',),
    "no items": (b'{"kind":"Status"}',),
    "items of another type": (b'{"items":{}}',),
    "not UTF-8": (b'{"items":[{"a":"\xff"}]}',),
    "damaged within an item": (b'{"items":[{"a":tru}', b",{}]}"),
    "a field without a colon": (b'{"kind" "NodeList","items":[]}',),
    "nested too deeply": (b'{"items":[' + b"[" * 100_000,),
}


def test_null_instead_of_items_is_an_empty_list() -> None:
    assert decoded(b'{"kind":"PartialObjectMetadataList","items":nu', b"ll}") == (
        [],
        {"kind": "PartialObjectMetadataList"},
    )


@pytest.mark.parametrize("pieces", BAD.values(), ids=BAD.keys())
def test_other_text_is_undecodable(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(Undecodable, match="the response"):
        decoded(*pieces)


def test_random_pieces_give_the_same_items() -> None:
    random = Random(3)
    items = [{"name": f"n{number}", "size": "x" * random.randrange(300)} for number in range(200)]
    body, pieces = json.dumps({"kind": "List", "items": items}).encode(), []
    while body:
        length = random.choice([1, 10, 400, 5000])
        pieces.append(body[:length])
        body = body[length:]
    assert decoded(*pieces) == (items, {"kind": "List"})
