"""Builders of the objects that the manager creates."""

__all__ = [
    "checksums",
    "history",
    "host_scripts",
    "image_list",
    "iso_image",
    "job_ledger",
    "jobs",
    "owner",
    "repository",
    "restore_list",
    "suc_plan",
    "toolkit",
]
