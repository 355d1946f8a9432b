"""The warnings of responses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.server.kube_server import FedStream
from upgrade_manager.kube.transport import Request, Response, Stream
from upgrade_manager.kube.warnings import WarnedTransport, warnings_in


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        ("", []),
        ('299 - "one"', ["one"]),
        ('299 - "one, two", 299 - "three"', ["one, two", "three"]),
        (r'299 - "a \"b\" \\ c"', ['a "b" \\ c']),
        ('199 - "other"', []),
        ("299 - broken", []),
    ],
    ids=["none", "one", "several", "escaped", "another code", "malformed"],
)
def test_texts_of_warnings_are_read(header: str, texts: list[str]) -> None:
    assert list(warnings_in(header)) == texts


class Warning299:
    """A transport whose responses have a warning."""

    def __init__(self) -> None:
        self.stream = FedStream(headers={"warning": '299 - "mind it"'})
        self.opened: list[Request] = []

    async def send(self, request: Request) -> Response:
        return Response(status=200, headers={"warning": '299 - "mind it"'}, body=request.body)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        self.opened.append(request)
        yield self.stream


async def test_warning_of_a_response_is_shown() -> None:
    shown: list[str] = []
    request = Request(method="PATCH", path="/x", body=b"{}")
    assert (await WarnedTransport(Warning299(), shown.append).send(request)).status == 200
    assert shown == ["mind it"]


async def test_warning_of_a_stream_is_not_shown() -> None:
    shown: list[str] = []
    inner, request = Warning299(), Request(method="GET", path="/x")
    async with WarnedTransport(inner, shown.append).open(request) as stream:
        assert stream is inner.stream
    assert (inner.opened, shown) == ([request], [])
