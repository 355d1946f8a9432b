"""The phase NodeUpgrade: it observes the nodes, lets `nodes` decide, and applies the effects.

phase          the phase, which calls all others
state          the data that the steps of the phase share, and the memory of the phase between reconciles
effects        applies the effects of decisions: Jobs, acknowledgements, annotations, taints
failure        the failure of a node, from its failed Job
drain_entries  the ledger's entries of drains: taints, and VMs that may be stopped
waits          the waits of the nodes, for the finders of blockers; `gate_waits` of the gate, `job_waits` of new Jobs
managed_nodes  checks of the nodes to upgrade, which other phases share
missing_nodes  nodes that are not in the cache
held_targets   VMs that only a node takes which an earlier upgrade holds cordoned
holds          the nodes that a pause holds
vm_restore     the Jobs that start VMs again; toolkit/vms records and stops them
contest        counts the removals of the hooks by another client
report         message and waits, milestones as events, and the estimated end
"""

__all__ = [
    "drain_entries",
    "effects",
    "failure",
    "gate_waits",
    "held_targets",
    "holds",
    "job_waits",
    "managed_nodes",
    "missing_nodes",
    "phase",
    "report",
    "state",
    "vm_restore",
    "waits",
]
