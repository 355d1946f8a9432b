"""The phases of an upgrade, one module each; ../outcome has their interface, ../node_upgrade is the longest phase.

plan_jobs      follows a Plan of the system-upgrade-controller that runs a Job on every node
survey         the second Plan of ImagePreload; survey_reports what its Pods report, survey_images their image
job_progress   the progress of a Job that a phase follows
repository     the upgrade repository, which exists from RepoCreate to ImageCleanup
iso_import     the image of the ISO, which the repository mounts
toolkit_image  records the toolkit image
iso_checksums  the Job that computes checksums of the ISO's files
eligibility    the check that Harvester supports the upgrade
"""

__all__ = [
    "cluster_upgrade",
    "eligibility",
    "image_cleanup",
    "image_preload",
    "initialize",
    "iso_checksums",
    "iso_download",
    "iso_import",
    "job_progress",
    "metadata_populate",
    "plan_jobs",
    "repo_create",
    "repository",
    "survey",
    "survey_images",
    "survey_reports",
    "toolkit_image",
]
