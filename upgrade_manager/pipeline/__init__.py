"""The upgrade: the reconciler of UpgradePlans and the engine with its table of phases.

controller      the informers, the work queue and the servers of metrics around one reconciler
dependencies    the collaborators and settings of the controller
reconciler_factory  makes the reconciler, with all that it imports, for the first plan
reconciler      one reconcile of a plan: advances, records errors, cleans up
acceptance      the start of a plan and of an attempt, one at a time
engine          the table of phases, and the walk through it
phases          the phases, one module each; `node_upgrade` is the phase with a separate package
host_changes    the changes of all hosts around the Jobs, as a table
conclusion      the end of a plan, step by step
pause           where a paused plan holds, and the conditions and events about it
continuations   the entries by which users let nodes go on that hold
attempt         a new attempt of a plan that has failed
settings        the settings of the cluster that the node upgrade changes and gives back
ending          the end of a plan, and the objects that pass to the next plan
context         one reconcile as phases see it: plan, caches, writes
status          the status, of which only changed fields are written; `status_throttle` is its pace
holders         what holds the cluster beside plans, as a table; `plan_queue` is the queue of plans
vm_recovery     the condition of a plan that waits for long
outcome         the results of phases; `errors` are the errors that phases raise
informers       the caches that phases request; `selections` are their selectors, `transforms` what they keep
predicates      which change of an object causes a reconcile, and when
plan_objects    creates and removes objects; `write_log` records each write
ledger          what the upgrade has changed elsewhere or owes, in status.ledger
job_ledger      what the toolkit's Jobs record in a ConfigMap, which is copied into the ledger
blocker_report  turns the waits of a phase into status.blockers, Stalled and events
events          the events of a plan; `history` keeps them in a ConfigMap, `history_rows` bounds it
metrics         the metrics of plans; `movement` remembers when a plan moved last
"""

__all__ = ["context", "controller", "dependencies", "ending", "errors", "node_upgrade", "phases", "settings"]
