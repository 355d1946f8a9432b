"""Wires the manager: one controller, its servers and its probes.

run.py calls it with real connections, tests with simulated ones; leader.py adds the controller, servers.py and
webhook/wiring.py add the servers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.cli.environment import new_client
from upgrade_manager.cli.servers import add_servers
from upgrade_manager.kube.clock import DatedTransport, ServerClock
from upgrade_manager.runtime.healthz import Probes
from upgrade_manager.runtime.loop_watchdog import LoopWatchdog
from upgrade_manager.runtime.manager import Manager, Stage
from webhook.settings import WebhookSettings

if TYPE_CHECKING:
    from upgrade_manager.cli.environment import Environment
    from upgrade_manager.cli.options import RunOptions
    from upgrade_manager.runtime.metrics import Metrics


def build_manager(environment: Environment, options: RunOptions, metrics: Metrics) -> Manager:
    """Return the manager, ready to run."""
    clock = ServerClock(environment.clock)
    corrected = replace(environment, clock=clock, transport=DatedTransport(environment.transport, clock))
    probes = Probes()
    manager = _empty_manager(corrected, options, metrics, probes)
    _add_common(manager, corrected, options, metrics, probes)
    return manager


def _empty_manager(environment: Environment, options: RunOptions, metrics: Metrics, probes: Probes) -> Manager:
    """Return a manager without servers."""
    if options.webhook_only:
        return Manager(elector=None)
    from upgrade_manager.cli.leader import manager_with_controller  # noqa: PLC0415  # 3 MiB, not for the webhook alone

    return manager_with_controller(environment, options, metrics, probes)


def _add_common(
    manager: Manager, environment: Environment, options: RunOptions, metrics: Metrics, probes: Probes
) -> None:
    """Add what runs in every replica, leader or not."""
    client = new_client(environment, environment.transport)
    add_servers(manager, options, probes=probes, metrics=metrics, client=client, clock=environment.clock)
    webhook = webhook_settings(options)
    if webhook is not None:
        from webhook.wiring import add_webhook  # noqa: PLC0415  # 1 MiB, and most managers serve no webhook

        add_webhook(
            manager,
            webhook,
            probes=probes,
            metrics=metrics,
            client=client,
            certificates=environment.certificates,
            clock=environment.clock,
            random=environment.random,
        )
    watchdog = LoopWatchdog(lag=metrics.loop_lag)
    probes.healthz.add("loop", watchdog.check)
    manager.add(Stage.OTHERS, "loop-watchdog", watchdog.run)


def webhook_settings(options: RunOptions) -> WebhookSettings | None:
    """Return the settings of the admission webhook; None if it is turned off."""
    if not options.webhooks or options.webhook is None:
        return None
    return WebhookSettings(
        address=options.webhook,
        certificates=options.webhook_certificates,
        namespace=options.namespace,
        toolkit=options.toolkit,
    )
