from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from hack.control_plane.certificates import Authority, server_context
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient
from upgrade_manager.preflight import certificate_probe
from upgrade_manager.preflight.certificate_probe import TlsProbe
from upgrade_manager.preflight.certificates import Validity

pytestmark = pytest.mark.real_loop
NOW = datetime.now(UTC)
LIFETIME, LEEWAY = timedelta(days=30), timedelta(hours=1)


async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Wait for the client to disconnect."""
    with contextlib.suppress(OSError):
        await reader.read()
    writer.close()


@contextlib.asynccontextmanager
async def served(
    handler: Any = quiet, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """Run a server; yield its port."""
    server = await asyncio.start_server(handler, host, 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
def authority() -> Authority:
    return Authority(now=NOW)


@pytest.fixture
def context(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    return server_context(authority.server(), tmp_path)


async def read(tls: ssl.SSLContext | None, host: str = "127.0.0.1") -> Sequence[Validity]:
    """Run a quiet server with that context and probe it."""
    async with served(tls=tls) as port:
        return await TlsProbe().read(host, port)


@pytest.mark.parametrize("age", [timedelta(), timedelta(days=60), -timedelta(days=60)], ids=["now", "past", "future"])
async def test_validity_is_read_although_it_may_be_over(age: timedelta, tmp_path: Path) -> None:
    (shown,) = await read(server_context(Authority(now=NOW - age).server(["elsewhere"]), tmp_path))
    made = (NOW - age).replace(microsecond=0)
    assert (shown.not_before, shown.not_after) == (made - LEEWAY, made + LIFETIME)


async def test_whole_chain_is_read(authority: Authority, tmp_path: Path) -> None:
    pair, stranger = authority.server(), Authority(now=NOW - timedelta(days=10))
    chained = replace(pair, certificate=pair.certificate + stranger.certificate)
    shown = await read(server_context(chained, tmp_path))
    ends = [x509.load_pem_x509_certificate(pem).not_valid_after_utc for pem in (pair.certificate, stranger.certificate)]
    assert [validity.not_after for validity in shown] == ends


@pytest.mark.parametrize(
    ("host", "sent"),
    [("127.0.0.1", None), ("kubernetes.localhost", "kubernetes.localhost"), ("localhost", "localhost")],
)
async def test_host_name_is_sent_as_sni(host: str, sent: str | None, context: ssl.SSLContext) -> None:
    named: list[str | None] = []
    context.sni_callback = lambda _connection, name, _context: named.append(name)
    await read(context, host)
    assert named == [sent]


async def test_localhost_is_tried_on_ipv6(context: ssl.SSLContext) -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        async with served(tls=context, host="::1") as port:
            assert await TlsProbe().read("kubernetes.localhost", port)
            assert await TlsProbe().read("::1", port)
    except OSError:
        pytest.skip("this machine has no address ::1")


async def test_server_with_client_certificates_is_read(authority: Authority, context: ssl.SSLContext) -> None:
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    assert await read(context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
async def test_tls_versions(version: ssl.TLSVersion, context: ssl.SSLContext) -> None:
    context.minimum_version = context.maximum_version = version
    assert await read(context)


async def plain_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTPS request?\n")
    writer.close()


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        pytest.param(plain_http, "TLS handshake failed: ", id="plain HTTP"),
        pytest.param(lambda _, writer: writer.close(), "connection failed: ", id="closed"),
        pytest.param(lambda _, writer: writer.transport.abort(), "connection failed: ", id="reset"),
    ],
)
async def test_failed_handshake(handler: Any, words: str) -> None:
    async with served(handler) as port:
        with pytest.raises(Transient) as caught:
            await TlsProbe().read("127.0.0.1", port)
    assert str(caught.value).startswith(words)
    assert len(str(caught.value)) > len(words)


async def test_silent_server_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_probe, "TIMEOUT", 0.05)
    with pytest.raises(Transient, match=r"timed out after 0\.05 s") as caught:
        await read(None)
    assert caught.value.reason == TIMED_OUT


async def test_absent_server_refuses_the_connection() -> None:
    async with served() as port:
        pass
    with pytest.raises(Transient, match=r"connection failed: .*(refused|Connect call failed)") as caught:
        await TlsProbe().read("127.0.0.1", port)
    assert caught.value.reason == REFUSED


@pytest.mark.parametrize("host", ["no.such.name.invalid", "a" * 64 + ".example.org", ""], ids=["unknown", "long", "no"])
async def test_unresolvable_host(host: str) -> None:
    words = "^name cannot be resolved: " if host.endswith(".invalid") else "cannot be resolved: |connection failed: "
    with pytest.raises(Transient, match=words):
        await TlsProbe().read(host, 6443)


@pytest.mark.parametrize(
    ("chain", "message"),
    [([b"nonsense"], "certificate cannot be parsed: "), ([], "server presents no certificate")],
    ids=["invalid", "absent"],
)
async def test_unusable_certificate_is_transient(
    context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, chain: list[bytes], message: str
) -> None:
    monkeypatch.setattr(certificate_probe, "_chain", lambda _: chain)
    with pytest.raises(Transient, match=message):
        await read(context)


def test_public_method_is_preferred() -> None:
    class Connection:
        def get_unverified_chain(self) -> list[bytes]:
            return [b"one", b"two"]

    assert certificate_probe._chain(Connection()) == [b"one", b"two"]


async def test_cancelled_probe_closes_its_connection() -> None:
    ended = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(1000):
                pass
        ended.set()
        writer.close()

    async with served(never) as port:
        probing = asyncio.create_task(TlsProbe().read("127.0.0.1", port))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not probing.done()
        probing.cancel()
        await asyncio.wait([probing])
        assert probing.cancelled()
        async with asyncio.timeout(5):
            await ended.wait()


async def test_connection_closed_after_the_timeout_is_ignored() -> None:
    closing = certificate_probe._Closing()
    closing.closed.cancel()
    closing.connection_lost(None)
    assert closing.closed.cancelled()
