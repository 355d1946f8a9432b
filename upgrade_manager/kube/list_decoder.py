"""Decodes the JSON of a list piece by piece, so that neither the loop nor the memory carries the whole response.

client.py decodes lists by it, decoder.py watches.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube.decoder import Undecodable

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.objects import Object

#: Of a value whose end is not received yet, and of one that is not JSON.
_INCOMPLETE = json.JSONDecodeError
_blank = re.compile(r"[ \t\n\r,]*")
_colon = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_value = json.JSONDecoder().raw_decode


class ListDecoder:
    """Returns each item as soon as it is complete; commas are not checked."""

    def __init__(self) -> None:
        #: The fields besides the items.
        self._fields: Object = {}
        #: True once `items` was an array.
        self._has_items = False
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        #: Reads on from a position; returns the next position, or None if it needs more text.
        self._step: Callable[[int], int | None] = self._start
        self._items: list[Object] = []

    def feed(self, chunk: bytes) -> list[Object]:
        """Return the items that this chunk completes. Raises Undecodable."""
        position = 0
        try:
            self._text += self._utf8.decode(chunk)
            while (reached := self._next(position)) is not None:
                position = reached
        except (ValueError, RecursionError) as error:
            raise Undecodable("the response is not the JSON of a list") from error
        self._text = self._text[position:]
        items, self._items = self._items, []
        return items

    def finish(self) -> Object:
        """Return the fields besides the items. Raises Undecodable for an incomplete list."""
        if self._step != self._end or not self._has_items:
            raise Undecodable(f"the response, a {self._fields.get('kind')}, is not a list of objects")
        return self._fields

    def _next(self, position: int) -> int | None:
        found = _blank.match(self._text, position)
        position = found.end() if found is not None else position
        return self._step(position) if position < len(self._text) else None

    def _start(self, position: int) -> int:
        if self._text[position] != "{":
            raise ValueError("not a JSON object")
        self._step = self._field
        return position + 1

    def _field(self, position: int) -> int | None:
        if self._text[position] == "}":
            self._step = self._end
            return position + 1
        name, end = self._complete(position)
        colon = _colon.match(self._text, end) if end else None
        if colon is None or colon.end() == len(self._text):
            return None
        if name == "items" and self._text[colon.end()] == "[":
            self._has_items, self._step = True, self._item
            return colon.end() + 1
        value, end = self._complete(colon.end())
        if end and name == "items" and value is None:
            # An empty list of metadata: kube-apiserver encodes a nil slice.
            self._has_items = True
        elif end:
            self._fields[str(name)] = value
        return end or None

    def _item(self, position: int) -> int | None:
        if self._text[position] == "]":
            self._step = self._field
            return position + 1
        item, end = self._complete(position)
        if end:
            if not isinstance(item, dict):
                raise ValueError("not an object")
            self._items.append(item)
        return end or None

    def _end(self, position: int) -> int:
        raise ValueError(f"{len(self._text) - position} characters after the JSON object")

    def _complete(self, position: int) -> tuple[Any, int]:
        """Return the value and its end; 0 if it is incomplete: a number at the end of the text may go on."""
        try:
            value, end = _value(self._text, position)
        except _INCOMPLETE:
            return None, 0
        return (value, end) if end < len(self._text) else (None, 0)
