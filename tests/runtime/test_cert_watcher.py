from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from upgrade_manager.runtime.cert_watcher import CertificateDirectory, CertificateError, context_from_pem
from upgrade_manager.runtime.self_signed import make_pem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

END_OF_KEY = b"-----END PRIVATE KEY-----\n"


def new_pair() -> tuple[bytes, bytes]:
    """Key and certificate."""
    key, end, certificate = make_pem(now=datetime.now(tz=UTC)).partition(END_OF_KEY)
    return key + end, certificate


def write(directory: Path, key: bytes, certificate: bytes) -> bytes:
    """Replace the files, as a kubelet does; returns the certificate as a client sees it."""
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
def test_a_pair_loads_from_memory(monkeypatch: pytest.MonkeyPatch, *, in_memory: bool) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    context = context_from_pem(b"".join(new_pair()))
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("pem", [b"", b"rubbish", new_pair()[0] + new_pair()[1]], ids=["nothing", "rubbish", "no pair"])
def test_what_is_no_pair_is_refused(pem: bytes) -> None:
    with pytest.raises(CertificateError, match="key and certificate do not load"):
        context_from_pem(pem)


@pytest.mark.real_loop
@pytest.mark.parametrize("name", [None, "example.test"])
async def test_a_new_pair_is_served_from_the_next_handshake_on(tmp_path: Path, name: str | None) -> None:
    first = write(tmp_path, *new_pair())
    async with serving(await CertificateDirectory(tmp_path).context()) as port:
        assert await handshake(port, name=name) == first
        second = write(tmp_path, *new_pair())
        assert await handshake(port, name=name) == second
        assert await handshake(port, name=name) == second


@pytest.mark.real_loop
@pytest.mark.parametrize("fault", ["no pair", "rubbish", "gone", "unreadable"])
async def test_a_bad_pair_never_replaces_a_good_one(tmp_path: Path, fault: str) -> None:
    good = write(tmp_path, *new_pair())
    async with serving(await CertificateDirectory(tmp_path).context()) as port:
        spoil(tmp_path, fault)
        with capture_logs() as lines:
            assert await handshake(port) == good
            assert await handshake(port) == good
        assert {line["event"] for line in lines} == {"certificate not replaced"}
        assert str(tmp_path) in lines[0]["error"]
        mend(tmp_path)
        third = write(tmp_path, *new_pair())
        assert await handshake(port) == third


def spoil(directory: Path, fault: str) -> None:
    if fault == "no pair":
        (directory / "tls.key").write_bytes(new_pair()[0])
    elif fault == "rubbish":
        (directory / "tls.crt").write_bytes(b"rubbish")
    else:
        (directory / "tls.crt").unlink()
    if fault == "unreadable":
        (directory / "tls.crt").mkdir()


def mend(directory: Path) -> None:
    if (directory / "tls.crt").is_dir():
        (directory / "tls.crt").rmdir()


@pytest.mark.parametrize("fault", ["gone", "unreadable", "rubbish"])
async def test_without_a_good_pair_at_first_nothing_starts(tmp_path: Path, fault: str) -> None:
    write(tmp_path, *new_pair())
    spoil(tmp_path, fault)
    with pytest.raises(CertificateError, match=str(tmp_path)):
        await CertificateDirectory(tmp_path).context()
