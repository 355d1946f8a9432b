"""One file for each command, with the table of its steps; ../run/catalogue.py starts them by name."""

__all__ = [
    "cluster_upgrade",
    "image_cleanup",
    "post_drain",
    "pre_drain",
    "prepare",
    "restore_vm",
    "single_node_upgrade",
    "survey",
    "version_guard",
    "vm_live_migrate_detector",
]
