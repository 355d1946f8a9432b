"""Certificates for tests: an authority and the certificates that it signs."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, as files and as text."""

    cert_file: Path
    key_file: Path

    @property
    def cert(self) -> str:
        return self.cert_file.read_text()

    @property
    def key(self) -> str:
        return self.key_file.read_text()


class Authority:
    """Signs certificates into a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        cert = _builder(self._name, self._name, self._key).add_extension(constraints, critical=True)
        self.file = folder / f"{name}.crt"
        self.file.write_bytes(cert.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    @property
    def cert(self) -> str:
        return self.file.read_text()

    def sign(self, name: str) -> Pair:
        """Sign a certificate for a DNS name; localhost includes 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(name)]
        if name == "localhost":
            names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        builder = _builder(_named(name), self._name, key)
        cert = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pair = Pair(cert_file=self._folder / f"{name}.crt", key_file=self._folder / f"{name}.key")
        pair.cert_file.write_bytes(cert.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        pair.key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return pair

    def server_context(self, name: str = "localhost", *, clients: bool = False) -> ssl.SSLContext:
        """Return the context of a server, which may require client certificates of this authority."""
        pair = self.sign(name)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Python 3.13 verifies strictly, the API server does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.load_cert_chain(pair.cert_file, pair.key_file)
        if clients:
            context.load_verify_locations(cadata=self.cert)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
    )
