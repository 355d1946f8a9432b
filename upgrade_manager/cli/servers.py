"""The servers of probes and metrics; webhook/wiring.py adds that of the admission webhook.

application.py adds them to the manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.runtime.manager import Stage
from upgrade_manager.runtime.metrics_server import plain_metrics_server, secure_metrics_server

if TYPE_CHECKING:
    from upgrade_manager.cli.options import RunOptions
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.runtime.healthz import Probes
    from upgrade_manager.runtime.manager import Manager
    from upgrade_manager.runtime.metrics import Metrics


def add_servers(
    manager: Manager, options: RunOptions, *, probes: Probes, metrics: Metrics, client: Client, clock: Clock
) -> None:
    """Add the servers of probes and metrics."""
    servers = [probes.server(options.probes)] if options.probes else []
    if options.metrics and options.metrics_secure:
        servers.append(secure_metrics_server(metrics, address=options.metrics, client=client, now=clock.now))
    elif options.metrics:
        servers.append(plain_metrics_server(metrics, address=options.metrics))
    for server in servers:
        manager.add(Stage.SERVERS, server.name, server.run, ready=server.bound)
