"""The virtual machines of a node before its drain, which are moved, or recorded and stopped.

vm_shutdown       stops VMs that cannot leave, and waits; pipeline/node_upgrade/vm_restore.py starts them again
vm_stop           records and stops VMs that users' PodDisruptionBudgets let stop
restore_list      the record of stopped VMs
evacuation        waits until VMs have left the node; `drain_taint` makes KubeVirt move them
stop_policy       whether a VM whose migration has failed is stopped
kubevirt          KubeVirt's API: start and stop
longhorn_gate     waits until volumes survive the loss of the node
"""

__all__ = [
    "drain_taint",
    "evacuation",
    "kubevirt",
    "longhorn_gate",
    "restore_list",
    "stop_policy",
    "vm_shutdown",
    "vm_stop",
]
