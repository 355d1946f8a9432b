"""How the processes of the control plane are started: what Kubernetes needs, kept to loopback and to one folder."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

if TYPE_CHECKING:
    from pathlib import Path

#: The controllers whose work the simulated cluster leaves to the real ones.
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "ttl-after-finished-controller",
    "serviceaccount-controller",
    "disruption-controller",
    # The API server's admission marks each claim as in use; without this one none would ever go.
    "persistentvolumeclaim-protection-controller",
)
_KEY_BITS = 2048
_EXPONENT = 65537


def etcd(*, folder: Path, port: int, peer: int) -> list[str]:
    """One member, which does not wait for the disk: what it stores is thrown away."""
    client, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
        # As installers of Kubernetes set it: else watches of kinds that nobody writes have no bookmarks and look dead.
        "--watch-progress-notify-interval=5s",
        "--log-level=warn",
    ]


def api_server(*, folder: Path, port: int, etcd: int) -> list[str]:
    """RBAC, tokens from a file, certificates of ours; it writes no endpoints of its own, as they would be loopback."""
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'service-account.key'}",
        f"--service-account-signing-key-file={folder / 'service-account.key'}",
        "--service-cluster-ip-range=10.53.0.0/16",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
    ]


def controller_manager(*, folder: Path, kubeconfig: Path) -> list[str]:
    """The controllers that are needed, as fast as they can, and no port."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        f"--service-account-private-key-file={folder / 'service-account.key'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--profiling=false",
    ]


def kubeconfig(*, url: str, authority: bytes, token: str) -> str:
    """For whoever speaks to the API server without our gateway; JSON, which is YAML too."""
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority).decode()}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "control-plane", "cluster": cluster}],
            "users": [{"name": "control-plane", "user": {"token": token}}],
            "contexts": [{"name": "control-plane", "context": {"cluster": "control-plane", "user": "control-plane"}}],
            "current-context": "control-plane",
        }
    )


def signing_key() -> bytes:
    """PEM, for the tokens of service accounts; serves for signing and for checking."""
    key = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_KEY_BITS)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
