"""One file per command: the table of its steps."""

__all__ = [
    "cluster_upgrade",
    "image_cleanup",
    "post_drain",
    "pre_drain",
    "prepare",
    "restore_vm",
    "single_node_upgrade",
    "version_guard",
    "vm_live_migrate_detector",
]
