from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.server.kube_server import event, node
from upgrade_manager.kube.decoder import LineSplitter, Undecodable, _decode_one_by_one, decode_lines


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))), st.lists(st.integers(0, 200)))
def test_lines_are_complete_however_the_bytes_were_cut(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines) + b"tail"
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    splitter = LineSplitter()
    found = [line for start, end in pairwise(edges) for line in splitter.feed(data[start:end])]
    assert splitter.feed(b"") == []
    assert found == lines
    assert splitter.rest() == b"tail"


def test_empty_lines_and_multi_byte_characters_are_decoded() -> None:
    lines = [b"", event("ADDED", node("käse")).strip(), b""]
    events, error = decode_lines(lines)
    assert [entry.object["metadata"]["name"] for entry in events] == ["käse"]
    assert error is None
    assert decode_lines([b""]) == ([], None)
    lines = [event("ADDED", node("a")), event("DELETED", node("b"))]
    assert _decode_one_by_one(lines) == decode_lines(lines)


BAD = {
    "not JSON": b"oops",
    "cut off": b'{"type":"ADDED","object":{',
    "two events": b'{"type":"ADDED","object":{}},{"type":"ADDED","object":{}}',
    "not UTF-8": b'{"type":"ADDED","object":{"x":"\xff"}}',
    "nested too deeply": b'{"type":"ADDED","object":{"x":' + b"[" * 100_000,
    "a number": b"7",
    "no type": b'{"object":{}}',
    "a list for the type": b'{"type":[],"object":{}}',
    "no object": b'{"type":"ADDED"}',
    "a list for the object": b'{"type":"ADDED","object":[]}',
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD.keys())
def test_bad_line_is_an_error_after_the_events_before(line: bytes) -> None:
    good = event("ADDED", node("a"))
    events, error = decode_lines([good, line, good])
    assert [entry.object["metadata"]["name"] for entry in events] == ["a"]
    assert isinstance(error, Undecodable)
    assert str(error) == f"a line of {len(line)} bytes in a watch is not an event"


def test_objects_of_one_read_share_their_key_strings() -> None:
    events, _ = decode_lines([event("ADDED", node("a", 1)), event("ADDED", node("b", 2))])
    first, second = (next(iter(entry.object["metadata"])) for entry in events)
    assert first is second
