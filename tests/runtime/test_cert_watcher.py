from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from structlog.testing import capture_logs

from upgrade_manager.runtime import cert_watcher
from upgrade_manager.runtime.cert_watcher import RETRY_INTERVAL, CertificateError, CertWatcher, context_from_pem
from upgrade_manager.runtime.self_signed import make_pem

END_OF_KEY = b"-----END PRIVATE KEY-----\n"


def new_pair() -> tuple[bytes, bytes]:
    """Return a key and its certificate."""
    key, end, certificate = make_pem(now=datetime.now(tz=UTC)).partition(END_OF_KEY)
    return key + end, certificate


PAIR = new_pair()


def write(directory: Path, key: bytes, certificate: bytes) -> bytes:
    """Replace the files as kubelet does, and return the certificate as clients see it."""
    for name, content in (("tls.key", key), ("tls.crt", certificate)):
        (directory / f"{name}.new").write_bytes(content)
        (directory / f"{name}.new").rename(directory / name)
    return ssl.PEM_cert_to_DER_cert(certificate.decode())


async def handshake(port: int, *, name: str | None = None) -> bytes | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name or "")
    shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return shown


@asynccontextmanager
async def serving(context: ssl.SSLContext) -> AsyncIterator[int]:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("in_memory", [True, False])
def test_pair_loads_with_and_without_memory_files(monkeypatch: pytest.MonkeyPatch, *, in_memory: bool) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    context = context_from_pem(b"".join(new_pair()))
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def encrypted(key: bytes) -> bytes:
    return load_pem_private_key(key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
    )


@pytest.mark.parametrize(
    "pem",
    [b"", b"invalid", new_pair()[0] + new_pair()[1], encrypted(PAIR[0]) + PAIR[1]],
    ids=["empty", "invalid", "mismatch", "encrypted"],
)
def test_invalid_pair_is_rejected(pem: bytes) -> None:
    with pytest.raises(CertificateError, match="key and certificate cannot be loaded"):
        context_from_pem(pem)


@pytest.mark.real_loop
@pytest.mark.parametrize("name", [None, "example.test"])
async def test_new_pair_is_served_from_the_next_handshake(tmp_path: Path, name: str | None) -> None:
    first = write(tmp_path, *new_pair())
    async with serving(await CertWatcher(tmp_path).context()) as port:
        assert await handshake(port, name=name) == first
        second = write(tmp_path, *new_pair())
        assert await handshake(port, name=name) == second
        assert await handshake(port, name=name) == second


@pytest.mark.real_loop
@pytest.mark.parametrize("fault", ["mismatch", "invalid", "missing", "unreadable"])
async def test_invalid_pair_does_not_replace_a_valid_one(tmp_path: Path, fault: str) -> None:
    good = write(tmp_path, *new_pair())
    async with serving(await CertWatcher(tmp_path).context()) as port:
        break_pair(tmp_path, fault)
        with capture_logs() as lines:
            assert await handshake(port) == good
            assert await handshake(port) == good
        assert [line["event"] for line in lines] == ["certificate not reloaded"]
        assert str(tmp_path) in lines[0]["error"]
        if fault == "unreadable":
            (tmp_path / "tls.crt").rmdir()
        third = write(tmp_path, *new_pair())
        assert await handshake(port) == third
        break_pair(tmp_path, fault)
        with capture_logs() as lines:
            assert await handshake(port) == third
        assert [line["event"] for line in lines] == ["certificate not reloaded"]


@pytest.mark.real_loop
async def test_pair_whose_read_failed_once_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path, *new_pair())
    now, reads = 100.0, 0
    monkeypatch.setattr(cert_watcher, "loop_time", lambda: now)
    async with serving(await CertWatcher(tmp_path).context()) as port:
        second = write(tmp_path, *new_pair())

        def failing(_path: Path) -> bytes:
            nonlocal reads
            reads += 1
            raise OSError("Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.read_bytes", failing)
            assert [await handshake(port) for _ in range(3)] == [first] * 3
            assert reads == 1
            now += RETRY_INTERVAL
            assert (await handshake(port), reads) == (first, 2)
        assert await handshake(port) == first
        now += RETRY_INTERVAL
        assert await handshake(port) == second


@pytest.mark.real_loop
async def test_former_pair_that_returns_is_not_a_failure(tmp_path: Path) -> None:
    """Kubelet replaces the directory by a link: the former files may come back with the same metadata."""
    first = write(tmp_path, *new_pair())
    async with serving(await CertWatcher(tmp_path).context()) as port:
        kept = tmp_path / "tls.key"
        kept.rename(tmp_path / "kept")
        with capture_logs() as lines:
            assert await handshake(port) == first
            (tmp_path / "kept").rename(kept)
            assert await handshake(port) == first
            kept.rename(tmp_path / "kept")
            assert await handshake(port) == first
        assert [line["event"] for line in lines] == ["certificate not reloaded"] * 2


def break_pair(directory: Path, fault: str) -> None:
    if fault == "mismatch":
        (directory / "tls.key").write_bytes(new_pair()[0])
    elif fault == "invalid":
        (directory / "tls.crt").write_bytes(b"invalid")
    else:
        (directory / "tls.crt").unlink()
    if fault == "unreadable":
        (directory / "tls.crt").mkdir()


@pytest.mark.parametrize("fault", ["missing", "unreadable", "invalid"])
async def test_first_pair_must_be_valid(tmp_path: Path, fault: str) -> None:
    write(tmp_path, *new_pair())
    break_pair(tmp_path, fault)
    with pytest.raises(CertificateError, match=str(tmp_path)):
        await CertWatcher(tmp_path).context()
