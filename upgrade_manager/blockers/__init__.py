"""Finds what holds an upgrade up: a table of finders, each for one kind of wait, below the pipeline.

Phases return waits, and pipeline/blocker_report.py runs the finders of those that are overdue.

wait                one wait of a phase for one object; `known_wait` those whose cause the pipeline knows
finder              a row of the table, and the run of all rows; `table` has the rows
object_view         what finders read objects by; pipeline/blocker_report.py implements it
jobs                Jobs that do not start or take long; `failing_jobs` those whose failed Pods do not end
job_failures        why a Job failed, for messages
pods                Pods that do not run; `taints` has the remedies of unschedulable ones
imports             the import of the ISO
repository_outage   the upgrade repository
upgrade_controller  the system-upgrade-controller
rancher             Rancher, which drains nodes; `drains` and `disruption_budgets` say why a drain fails
migrations          VMs that do not leave a node; `forbidden_stops` budgets that keep the upgrade from stopping VMs
volumes             volumes for which a drain waits
node_return         nodes that do not come back from their reboot
known               waits whose cause the pipeline knows
refusals            writes that the API server or a webhook refuses
deployments         other controllers' Deployments; `warnings` are the events about an object
first_seen          the time at which this process first saw a state
remedy              remedies that several finders share
shared_cause        several blockers with one cause as one blocker
"""

__all__ = [
    "deadlines",
    "finder",
    "first_seen",
    "imports",
    "job_failures",
    "jobs",
    "known_wait",
    "object_view",
    "pods",
    "rancher",
    "refusals",
    "remedy",
    "repository_outage",
    "shared_cause",
    "table",
    "wait",
    "warnings",
]
