"""The virtual machines of a node before its drain, which are moved, or recorded and stopped.

vm_shutdown       records and stops VMs that cannot leave; pipeline/node_upgrade/vm_restore.py starts them again
restore_list      the record of stopped VMs
evacuation        waits until VMs have left the node; `drain_taint` makes KubeVirt move them
kubevirt          KubeVirt's API: start and stop
longhorn_gate     waits until volumes survive the loss of the node
"""

__all__ = ["drain_taint", "evacuation", "kubevirt", "longhorn_gate", "restore_list", "vm_shutdown"]
