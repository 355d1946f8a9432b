"""The admission webhook of UpgradePlans: it refuses an upgrade before the upgrade can harm the cluster.

    server      HTTP: one review in, one verdict out; `body` and `review` read it within limits
    admission   what a create, an update and a delete have to pass
    catalogue   the table of checks that a new plan has to pass
    checks      one file per check, each over the cluster that `cluster` reads
    runner      runs checks concurrently before a deadline

The command `upgrade-manager preflight` runs the same table by hand.
"""

__all__ = ["admission", "catalogue", "cluster", "metrics", "server"]
