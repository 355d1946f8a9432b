from __future__ import annotations

import runpy
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from upgrade_manager.runtime import self_signed
from upgrade_manager.runtime.cert_watcher import CertificateError, context_from_pem

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_certificate_is_valid_for_a_year_and_slow_clocks() -> None:
    certificate = x509.load_pem_x509_certificate(self_signed.make_pem(now=NOW))
    assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=365)


@pytest.mark.real_loop
async def test_program_makes_a_valid_pair() -> None:
    assert isinstance(await self_signed.self_signed(), ssl.SSLContext)


@pytest.mark.real_loop
@pytest.mark.parametrize(
    "command", [("/no/such/program",), (sys.executable, "-c", "raise SystemExit(3)")], ids=["absent", "failing"]
)
async def test_failing_program_raises_certificate_error(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(self_signed, "_COMMAND", command)
    with pytest.raises(CertificateError, match="cannot create a certificate"):
        await self_signed.self_signed()


@pytest.mark.full
def test_manager_does_not_import_cryptography() -> None:
    code = (
        "import asyncio, sys; from upgrade_manager.runtime import metrics_server, self_signed;"
        "asyncio.run(self_signed.self_signed()); sys.exit('cryptography' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  # a fixed command


def test_module_runs_as_a_program(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "upgrade_manager.runtime.self_signed")
    runpy.run_module("upgrade_manager.runtime.self_signed", run_name="__main__")
    context_from_pem(capfdbinary.readouterr().out)
