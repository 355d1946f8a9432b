"""The host of a node: its files and programs, and the configuration of Rancher's agent and RKE2.

host_tree           files of the host; `host_paths` are their paths, `disk_space` is the free space for them
host_programs       programs of the host, by chroot, and of the Pod; `program_input` feeds their standard input
grub_environment    GRUB's file of variables; `network_cards` are the NICs, whose names GRUB passes to the kernel
rke2_config         the configuration that the new RKE2 needs
system_agent        the unit of rancher-system-agent
kubernetes_version  the wait for the node's kubelet
"""

__all__ = [
    "disk_space",
    "grub_environment",
    "host_paths",
    "host_programs",
    "host_tree",
    "kubernetes_version",
    "network_cards",
    "rke2_config",
    "system_agent",
]
