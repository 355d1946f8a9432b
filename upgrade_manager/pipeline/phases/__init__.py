"""The phases of an upgrade, one module each; ../outcome has their interface, ../node_upgrade the longest phase.

plan_jobs      follows a Plan of the system-upgrade-controller that runs a Job on every node
survey         the second Plan of ImagePreload; survey_reports what its Pods report, survey_images their image
host_plans     the changes of all hosts around the Jobs; host_ending undoes them at an early end
guarded_nodes  NodeUpgrade between two of these changes; multus_job waits for RKE2 at its end
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
    "guarded_nodes",
    "host_ending",
    "host_plans",
    "image_cleanup",
    "image_preload",
    "initialize",
    "iso_checksums",
    "iso_download",
    "iso_import",
    "job_progress",
    "metadata_populate",
    "multus_job",
    "plan_jobs",
    "repo_create",
    "repository",
    "survey",
    "survey_images",
    "survey_reports",
    "toolkit_image",
]
