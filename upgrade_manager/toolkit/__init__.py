"""The commands that run inside the Jobs, on a node's host or on the cluster's components.

run       how a command runs: the catalogue of commands, steps, progress, errors
commands  one file for each command, with the table of its steps
host      files and programs of the host
os        the operating system: written beside the running one, started by the next boot
images    container images on the node
iso       the release's ISO
vms       VMs that leave the node or are stopped
charts    Rancher, Harvester's charts and add-ons
"""

__all__ = ["charts", "host", "iso", "run"]
