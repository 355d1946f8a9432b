"""Secrets take plain text and keep it encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.wire import Wire

SECRETS = "/api/v1/namespaces/default/secrets"


async def test_plain_text_is_encoded_and_wins(wire: Wire) -> None:
    body = {"metadata": {"name": "s"}, "data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "ü"}}
    created = await wire.post(SECRETS, body)
    assert created.body["data"] == {"a": "w7w=", "b": "eQ=="}
    assert "stringData" not in created.body
    patched = await wire.patch(f"{SECRETS}/s", {"stringData": {"c": "z"}})
    assert patched.body["data"] == {"a": "w7w=", "b": "eQ==", "c": "eg=="}
