"""Makes a new CA and a serving certificate.

pair.py runs this module as a program, so that the cryptography library, which is needed once a year, takes no memory in
the manager. Each certificate has a new CA, whose key is discarded, so that no stored key can sign another certificate.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from upgrade_manager.runtime.certificate_builder import builder, certificate_pem, common_name, key_pem, new_key
from webhook.certificates.pair import CA_COMMON_NAME, Service

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

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
    authority_key, key = new_key(), new_key()
    authority = _authority(authority_key.public_key(), now).sign(authority_key, hashes.SHA256())
    certificate = _certificate(key.public_key(), authority, service, now).sign(authority_key, hashes.SHA256())
    return {
        "key": key_pem(key).decode(),
        "certificate": certificate_pem(certificate).decode(),
        "authority": certificate_pem(authority).decode(),
    }


def _authority(key: ec.EllipticCurvePublicKey, now: datetime) -> x509.CertificateBuilder:
    name = common_name(CA_COMMON_NAME)
    return (
        builder(key, subject=name, issuer=name, now=now)
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
        # The certificate has no subject, because a common name has at most 64 characters.
        builder(key, subject=x509.Name([]), issuer=authority.subject, now=now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"digital_signature": True}), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(names, critical=True)
        .add_extension(issuer, critical=False)
    )


def main() -> None:
    """Print a new pair as JSON."""
    name, namespace, now = sys.argv[1:]
    made = make(Service(name=name, namespace=namespace), now=datetime.fromisoformat(now))
    sys.stdout.write(json.dumps(made))


if __name__ == "__main__":
    main()
