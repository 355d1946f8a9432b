"""The commands that run inside the Jobs, on a node's host or on the cluster's components.

run       the run of a command: the catalogue of commands, steps, progress, errors
commands  one file for each command, with the table of its steps
host      files and programs of the host
os        the new operating system, which is written beside the running system and started by the next boot
images    container images on the node
iso       the release's ISO
vms       the VMs of the node, which leave the node or are stopped
survey    checks of a node before the upgrade
charts    Rancher, Harvester's charts and add-ons
"""

__all__ = ["charts", "host", "iso", "run"]
