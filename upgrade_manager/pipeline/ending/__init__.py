"""The end of a plan, and what passes to the next plan or the next version of the manager.

cleanup              gives settings back and removes what was created, at the end and before the deletion of a plan
failed_jobs          keeps the Jobs that failed, for diagnosis
orphaned_jobs        lets Jobs continue that run when their plan ends; the next plan waits for them
repository_handover  keeps the upgrade repository for those Jobs
held_nodes           nodes that the drain hooks hold after an end before all nodes are upgraded
leftovers            removes what a plan left that was deleted without its clean-up
takeover             labels the objects of a plan that an earlier version of the manager began
"""

__all__ = ["cleanup", "failed_jobs", "held_nodes", "leftovers", "orphaned_jobs", "repository_handover", "takeover"]
