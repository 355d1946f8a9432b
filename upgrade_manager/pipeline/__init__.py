"""The upgrade: the reconciler of UpgradePlans and the engine with its table of phases.

controller      the informers, the work queue and the servers of metrics around one reconciler
reconciler      one reconcile of a plan: accepts, advances, records errors, cleans up
engine          the table of phases, and the walk through it
phases          the phases, one module each; `node_upgrade` is the one that has a room
settings        what the node upgrade changes in the cluster, and gives back
ending          the end of a plan, and what passes to the next one
context         one reconcile as phases see it: plan, caches, writes
status          the status, of which only changed fields are written
outcome         what a phase returns; `errors` are what it raises
informers       the caches that phases ask for; `selections` are their selectors
plan_objects    creates and removes objects; `write_log` records each write
blocker_report  turns what a phase waits for into status.blockers, Stalled and events
events          the events of a plan
metrics         the metrics of plans; `movement` remembers when a plan moved last
"""

__all__ = ["context", "controller", "ending", "errors", "node_upgrade", "phases", "settings"]
