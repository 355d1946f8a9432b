"""Generic parts of a controller: work queue, reconcile loop, leader election, ordered start and stop, metrics, probes.

Modelled on controller-runtime and client-go; independent of upgrades.
"""

__all__ = [
    "bearer_token",
    "cert_watcher",
    "certificate_builder",
    "concurrency",
    "controller",
    "error_log",
    "healthz",
    "http_server",
    "kube_metrics",
    "late_import",
    "leader_election",
    "lease",
    "logging",
    "loop_watchdog",
    "manager",
    "metrics",
    "metrics_server",
    "passing_errors",
    "peers",
    "refusal_log",
    "result",
    "review_shares",
    "self_signed",
    "signals",
    "time_limit",
    "ttl_cache",
    "workqueue",
]
