"""Parts of the self-made certificates. Only programs that make one import this module: cryptography takes 8 MB."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from datetime import datetime

_VALIDITY = timedelta(days=365)
#: A certificate is valid before now, for clients whose clocks are slow.
_CLOCK_SKEW = timedelta(hours=1)


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key."""
    return ec.generate_private_key(ec.SECP256R1())


def builder(
    key: ec.EllipticCurvePublicKey, *, subject: x509.Name, issuer: x509.Name, now: datetime
) -> x509.CertificateBuilder:
    """Return the builder of a certificate that is valid for a year, without extensions."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
    )


def common_name(name: str) -> x509.Name:
    """Return a subject."""
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the key as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """Return the certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)
