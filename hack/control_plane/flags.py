"""Command lines and files of the control plane's processes, all on loopback and in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.control_plane.certificates import Authority
    from hack.control_plane.control_plane import Account
    from hack.scenario import UpgradeController

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
    # Removes the finalizer that kube-apiserver puts on each claim.
    "persistentvolumeclaim-protection-controller",
    # Adds the roles of users to view, edit and admin.
    "clusterrole-aggregation-controller",
)
#: The rules for users.
AUDIT_POLICY = Path(__file__).parents[2] / "docs/examples/audit/policy.yaml"
#: In the folder; one event in a line.
AUDIT_LOG = "audit.log"
#: MB; large enough that the log is never rotated.
_AUDIT_LOG_SIZE = 10_000
_KEY_BITS = 2048
_EXPONENT = 65537


def etcd(*, folder: Path, port: int, peer: int) -> list[str]:
    """Return the flags of one member that does not wait for the disk: its data is temporary."""
    client, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
        # As installers of Kubernetes set it: watches of idle kinds get bookmarks.
        "--watch-progress-notify-interval=5s",
        "--log-level=warn",
    ]


def api_server(*, folder: Path, port: int, etcd: int) -> list[str]:
    """Return the flags for RBAC, tokens from a file and an audit log; loopback addresses are invalid as endpoints."""
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
        f"--audit-policy-file={AUDIT_POLICY}",
        f"--audit-log-path={folder / AUDIT_LOG}",
        f"--audit-log-maxsize={_AUDIT_LOG_SIZE}",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
    ]


def controller_manager(*, folder: Path, kubeconfig: Path, controllers: Iterable[str]) -> list[str]:
    """Return the flags for these controllers, without rate limit and port."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(controllers)}",
        f"--service-account-private-key-file={folder / 'service-account.key'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--profiling=false",
    ]


def scheduler(*, kubeconfig: Path) -> list[str]:
    """Return the flags for a scheduler without rate limit and port."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--profiling=false",
    ]


def upgrade_controller(settings: UpgradeController) -> dict[str, str]:
    """Return the variables of the system-upgrade-controller, which set the defaults of its Jobs."""
    return {
        "SYSTEM_UPGRADE_JOB_ACTIVE_DEADLINE_SECONDS": str(settings.deadline),
        "SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT": str(settings.backoff_limit),
        "SYSTEM_UPGRADE_JOB_IMAGE_PULL_POLICY": settings.pull_policy,
        "SYSTEM_UPGRADE_JOB_TTL_SECONDS_AFTER_FINISH": str(settings.ttl),
    }


def write_files(folder: Path, authority: Authority, accounts: Iterable[Account]) -> None:
    """Write kube-apiserver's certificate and tokens, and the key that signs service accounts' tokens."""
    authority.server(("127.0.0.1", "localhost", "kubernetes.default.svc")).write(folder, "server")
    key = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_KEY_BITS)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (folder / "service-account.key").write_bytes(pem)
    lines = [f'{one.token},{one.name},{one.name},"{",".join(one.groups)}"\n' for one in accounts]
    (folder / "tokens.csv").write_text("".join(lines))
