"""The end of a plan, and what passes to the next plan or the next version of the manager.

advice               names what a user has changed at the advice of remedies, and has not given back
advised_fields       how each of these changes is found
cleanup              removes the created objects, at the end and before the deletion of a plan
component_job        waits for the Job of the components, before what that Job may write is given back
failure              records a failure with the next steps of a user
failed_jobs          keeps the Jobs that failed, for diagnosis
orphaned_jobs        lets Jobs that run at the end of their plan continue; the next plan waits for these Jobs
repository_handover  keeps the upgrade repository for those Jobs
held_nodes           nodes that the drain hooks hold after a plan that ended before all nodes were upgraded
payload              what a failed plan keeps for its next attempt
passing_on           what a plan that ends early owes, which the next accepted plan copies
settlement           names the entries of the ledger that nothing settles any more
leftovers            removes the objects of a plan that was deleted without its clean-up
takeover             labels the objects of a plan that an earlier version of the manager began
"""

__all__ = [
    "advice",
    "advised_fields",
    "cleanup",
    "component_job",
    "failed_jobs",
    "failure",
    "held_nodes",
    "leftovers",
    "orphaned_jobs",
    "passing_on",
    "payload",
    "repository_handover",
    "settlement",
    "takeover",
]
