"""The admission webhook of UpgradePlans: it refuses an upgrade before the upgrade can harm the cluster.

wiring        adds the webhook to a manager; the command line calls it, with `settings`
preflight     the checks of the command `upgrade-manager preflight`, these and others
server        HTTP: one review in, one verdict out; `body` and `review` read it within limits
mutation      the annotations that name a plan's creator and the user of its last change
debts         the warnings about the deletion of a plan that has failed
request_log   the fields of a request in the log
admission     the rules that a create, an update and a delete have to pass
continuation  the check of entries by which nodes go on that hold
catalogue     the table of checks that a new plan has to pass; `attempt` has those of an attempt after a failure
checks        one file per check; `cluster` reads the cluster, `listings` are the objects to read
caches        informers of the large listings; `sharing` lets several readers share one list
runner        runs checks concurrently before a deadline
certificates  the self-made certificate and its renewal
readiness     the check that an API server can reach the webhook, for `/readyz`
api_servers   the addresses of API servers, whose connections and bodies give way last and whose reviews are all logged
"""

__all__ = ["preflight", "settings", "wiring"]
