"""Rules about objects of other controllers, as pure functions of raw objects.

The Job on a node, the finder of blockers and the webhook apply the same rule, so that they explain a wait alike.
"""

__all__ = [
    "condition_words",
    "deployments",
    "evictions",
    "final_phases",
    "job_state",
    "label_selectors",
    "live_migration",
    "machine_plan",
    "migrations",
    "node_affinity",
    "pod_reason",
    "taints",
    "vm_obstacles",
    "volumes",
]
