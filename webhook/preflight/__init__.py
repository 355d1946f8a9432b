"""The checks of the command `upgrade-manager preflight`, which run on the user's machine before a plan is created.

gate          the table: all checks of a new plan, run with the user's permissions
harvester     the APIs that every Harvester cluster has
creation      a dry-run of the plan's creation on the API server
release       the rules about releases that Initialize applies
kubelets      the disk space that Initialize requires, through the API server
certificates  the API servers' certificates, as Initialize reads them
iso           the ISO that the Version names; `iso_server` sends the requests
permission    the permissions that the user lacks
versions      the releases that the cluster knows, for `--versions`
row           the result of a check, for the command line

catalogue.py has the checks of the webhook, which are part of the gate.
"""

__all__ = ["gate", "iso_server", "row", "versions"]
