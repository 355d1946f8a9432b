"""Everything outside the process that the manager's parts reach.

run.py creates it; application.py and leader.py build the manager on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager import __version__
from upgrade_manager.api.keys import MANAGER
from upgrade_manager.kube.client import Client
from upgrade_manager.release.repository_client import SERVICE_URL

if TYPE_CHECKING:
    from random import Random

    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.kube.transport import Transport
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.preflight.kubelets import KubeletReader
    from upgrade_manager.release.repository_client import RepositoryClient

USER_AGENT = f"{MANAGER}/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Access to everything outside the process: real in production, simulated in tests."""

    transport: Transport
    #: For the requests of the leader election alone.
    lease: Transport
    repository: RepositoryClient
    certificates: CertificateProbe
    kubelets: KubeletReader
    clock: Clock
    random: Random
    #: The URL of the repository's Service, without `--repo-url`.
    repo_url: str = SERVICE_URL


def new_client(environment: Environment, transport: Transport) -> Client:
    """Return a client that names the manager to the API server."""
    return Client(transport, user_agent=USER_AGENT, random=environment.random)
