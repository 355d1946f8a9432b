"""What runs inside the Jobs: commands on a node's host, and commands on the cluster's components.

catalogue         the commands; `commands` has one file for each, with the table of its steps
steps             runs a table: checks each effect, acts, and waits for it
context           what the steps work on
host_tree         files of the host; `host_paths` are their places, `downloads` the large ones
host_programs     programs of the host, by chroot; `images` are those of containerd
repository_files  the ISO over HTTP; `release_files` are its descriptions, `image_archive` its archives
progress          shows the current step; `plan_events` are events on the UpgradePlan
"""

__all__ = [
    "catalogue",
    "context",
    "errors",
    "host_programs",
    "host_tree",
    "plan_events",
    "progress",
    "release_files",
    "repository_files",
    "steps",
]
