"""The host of a node: its files and programs, and what Rancher and RKE2 find there.

host_tree           files of the host; `host_paths` are their places, `disk_space` is what is left for them
host_programs       programs of the host, by chroot, and of the Pod; `program_input` feeds them
rke2_config         the configuration that the new RKE2 needs
system_agent        the unit of rancher-system-agent
kubernetes_version  the wait for the node's kubelet
"""

__all__ = [
    "disk_space",
    "host_paths",
    "host_programs",
    "host_tree",
    "kubernetes_version",
    "rke2_config",
    "system_agent",
]
