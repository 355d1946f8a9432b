"""The host of a node: its files and programs, and the configuration of Rancher's agent and RKE2.

host_tree           files of the host; `host_paths` are their paths, `disk_space` is the free space for them
host_programs       programs of the host, by chroot, and of the Pod; `program_input` feeds their standard input
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
