"""The program that makes certificates, and the verification of its pairs."""

from __future__ import annotations

import runpy
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.support.webhook.webhook_certificates import THE_SERVICE, new_pair, verify
from upgrade_manager.runtime.cert_watcher import CertificateError
from webhook.certificates import issuer, pair
from webhook.certificates.pair import Pair

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOOD = issuer.make(THE_SERVICE, now=NOW)
OTHER = issuer.make(THE_SERVICE, now=NOW)
ENCRYPTED = (
    load_pem_private_key(GOOD["key"].encode(), None)
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    .decode()
)


def test_certificate_is_for_the_service_and_a_year() -> None:
    made = x509.load_pem_x509_certificate(GOOD["certificate"].encode())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    suffixes = ("", ".harvester-system", ".harvester-system.svc", ".harvester-system.svc.cluster.local")
    expected = [f"harvester-upgrade-manager-webhook{suffix}" for suffix in suffixes]
    assert names.get_values_for_type(x509.DNSName) == expected
    found = new_pair(NOW)
    assert (found.not_before, found.not_after) == (NOW - timedelta(hours=1), NOW + timedelta(days=365))


def test_strict_client_accepts_the_certificate() -> None:
    made = Pair.load(**GOOD, service=THE_SERVICE)
    assert verify(made.context(), OTHER["authority"], now=NOW) != ""
    assert verify(made.context(), GOOD["authority"], now=NOW) == ""


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"key": OTHER["key"]}, id="another key"),
        pytest.param({"key": ENCRYPTED}, id="an encrypted key"),
        pytest.param({"key": ""}, id="no key"),
        pytest.param({"certificate": OTHER["certificate"], "key": OTHER["key"]}, id="another CA"),
        pytest.param({"certificate": "rubbish"}, id="no certificate"),
        pytest.param({"authority": GOOD["certificate"]}, id="a CA that is none"),
        pytest.param({"authority": ""}, id="no CA"),
        pytest.param({"authority": "é"}, id="a CA that is not ASCII"),
        pytest.param({"authority": GOOD["authority"] + OTHER["authority"]}, id="two CAs"),
    ],
)
def test_pair_that_does_not_verify_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(CertificateError):
        Pair.load(**GOOD | changed, service=THE_SERVICE)


def test_pair_of_another_service_is_refused() -> None:
    with pytest.raises(CertificateError, match="certificate cannot be verified"):
        Pair.load(**GOOD, service=replace(THE_SERVICE, namespace="other"))


def test_key_is_not_shown() -> None:
    assert GOOD["key"] not in repr(Pair.load(**GOOD, service=THE_SERVICE))


@pytest.mark.real_loop
async def test_program_makes_a_pair() -> None:
    made = await Pair.issue(THE_SERVICE, NOW)
    assert made.not_after == NOW + timedelta(days=365)


@pytest.mark.real_loop
async def test_program_without_output_raises_certificate_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "_ISSUER", (sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(CertificateError, match="cannot create a certificate"):
        await Pair.issue(THE_SERVICE, NOW)


@pytest.mark.full
def test_manager_does_not_import_cryptography_for_the_webhook() -> None:
    code = (
        "import asyncio, datetime, sys; from webhook.certificates import rotation, pair;"
        "service = pair.Service(name='a', namespace='b');"
        "asyncio.run(pair.Pair.issue(service, datetime.datetime.now(datetime.UTC)));"
        "sys.exit('cryptography' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  # a fixed command


def test_issuer_runs_as_a_program(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "webhook.certificates.issuer")
    monkeypatch.setattr(sys, "argv", ["issuer", "a", "b", NOW.isoformat()])
    runpy.run_module("webhook.certificates.issuer", run_name="__main__")
    assert b"BEGIN CERTIFICATE" in capfdbinary.readouterr().out
