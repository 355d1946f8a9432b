"""Makes a new CA and a serving certificate.

The manager runs this module as a program, so that the cryptography library takes no memory in the manager. Each
certificate has a new CA, whose key is discarded: no stored key can sign another certificate.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from webhook.certificates.pair import CA_COMMON_NAME, Service

VALIDITY = timedelta(days=365)
#: The certificate is valid before now, for API servers whose clocks are slow.
CLOCK_SKEW = timedelta(hours=1)
_NO_USAGE = dict.fromkeys(
    (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    ),
    False,
)


def make(service: Service, *, now: datetime) -> dict[str, str]:
    """Return key, certificate and CA as PEM, as the arguments of `Pair.load`."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _authority(authority_key.public_key(), now).sign(authority_key, hashes.SHA256())
    certificate = _certificate(key.public_key(), authority, service, now).sign(authority_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        "key": private.decode(),
        "certificate": certificate.public_bytes(pem).decode(),
        "authority": authority.public_bytes(pem).decode(),
    }


def _authority(key: ec.EllipticCurvePublicKey, now: datetime) -> x509.CertificateBuilder:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, CA_COMMON_NAME)])
    return (
        _builder(key, subject=name, issuer=name, now=now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"key_cert_sign": True}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _certificate(
    key: ec.EllipticCurvePublicKey, authority: x509.Certificate, service: Service, now: datetime
) -> x509.CertificateBuilder:
    identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    names = x509.SubjectAlternativeName([x509.DNSName(name) for name in service.names])
    return (
        # No subject, because a common name has at most 64 characters.
        _builder(key, subject=x509.Name([]), issuer=authority.subject, now=now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"digital_signature": True}), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(names, critical=True)
        .add_extension(issuer, critical=False)
    )


def _builder(
    key: ec.EllipticCurvePublicKey, *, subject: x509.Name, issuer: x509.Name, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALIDITY)
    )


def main() -> None:
    """Print a new pair as JSON."""
    name, namespace, now = sys.argv[1:]
    made = make(Service(name=name, namespace=namespace), now=datetime.fromisoformat(now))
    sys.stdout.write(json.dumps(made))


if __name__ == "__main__":
    main()
