"""The admission webhook of UpgradePlans: it refuses an upgrade before the upgrade can harm the cluster.

wiring        adds the webhook to a manager: the command line calls it
preflight     runs the checks for the command `upgrade-manager preflight`
server        HTTP: one review in, one verdict out; `body` and `review` read it within limits
mutation      the annotations that name a plan's creator and the user of its last change
request_log   what the log says about a request
admission     what a create, an update and a delete have to pass
catalogue     the table of checks that a new plan has to pass
checks        one file per check, each over the cluster that `cluster` reads; `listings` are what they read
caches        informers of the large listings; `sharing` reads a listing once for several readers
runner        runs checks concurrently before a deadline
certificates  the self-made certificate and its renewal
readiness     whether an API server would reach it, for `/readyz`
api_servers   the addresses whose connections and bodies give way last, and whose reviews are logged in full
"""

__all__ = ["preflight", "wiring"]
