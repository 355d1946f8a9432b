"""Adds the admission webhook to a manager.

cli/application.py calls it for the commands `run` and `webhook`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from upgrade_manager.runtime.cert_watcher import CertWatcher
from upgrade_manager.runtime.manager import Stage
from upgrade_manager.runtime.peers import Peers
from webhook.admission import Admission
from webhook.api_servers import ApiServers
from webhook.caches import ClusterCaches
from webhook.catalogue import CHECKS
from webhook.certificates.pair import Pair, Service
from webhook.certificates.rotation import SERVICE, CertificateRotation
from webhook.cluster import LiveReader
from webhook.listings import CORDONED_NODES, LARGE
from webhook.metrics import WebhookMetrics
from webhook.readiness import WebhookReadiness
from webhook.server import webhook_server
from webhook.sharing import SharedReader

if TYPE_CHECKING:
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.runtime.healthz import Probes
    from upgrade_manager.runtime.manager import Manager
    from upgrade_manager.runtime.metrics import Metrics
    from webhook.settings import WebhookSettings


def add_webhook(
    manager: Manager,
    settings: WebhookSettings,
    *,
    probes: Probes,
    metrics: Metrics,
    client: Client,
    certificates: CertificateProbe,
    clock: Clock,
    random: Random,
) -> None:
    """Add the admission webhook, its certificate, its caches and its readiness to the manager."""
    if settings.certificates:
        tls = CertWatcher(Path(settings.certificates)).context
    else:
        rotation = CertificateRotation(
            client,
            service=Service(name=SERVICE, namespace=settings.namespace),
            issue=Pair.issue,
            now=clock.now,
            random=random,
        )
        tls = rotation.context
        probes.readyz.add("webhook-certificate", rotation.check)
        manager.add(Stage.WEBHOOKS, "webhook-certificate", rotation.run)
    live = SharedReader(LiveReader(client))
    caches = ClusterCaches(client, listings=LARGE, changes=CORDONED_NODES, live=live, random=random)
    manager.add(Stage.OTHERS, "webhook-caches", caches.run)
    peers = Peers()
    manager.add(Stage.WEBHOOKS, "webhook-api-servers", ApiServers(client, peers).run)
    webhook_metrics = WebhookMetrics(metrics, checks=[check.name for check in CHECKS])
    admission = Admission(live, caches=caches, toolkit=settings.toolkit)
    server = webhook_server(admission, metrics=webhook_metrics, address=settings.address, tls=tls, peers=peers)
    manager.add(Stage.WEBHOOKS, server.name, server.run, ready=server.bound)
    readiness = WebhookReadiness(server, host=settings.address[0], certificates=certificates, now=clock.now)
    probes.readyz.add("webhook", readiness.check)
    metrics.on_scrape(lambda: webhook_metrics.served(is_ready=readiness.is_ready, expires_at=readiness.expires_at))
    manager.add(Stage.OTHERS, "webhook-readiness", readiness.run)
