"""What runs inside the Jobs: commands on a node's host, and commands on the cluster's components.

catalogue         the commands; `commands` has one file for each, with the table of its steps
steps             runs a table: checks each effect, acts, and waits for it
context           what the steps work on
host_tree         files of the host; `host_paths` are their places, `disk_space` is what is left for them
downloads         large files of the ISO on the host; `partial_file` is one until it is complete
host_programs     programs of the host, by chroot, and of the Pod; `program_input` feeds them, `images` are containerd's
virtual_machines  stops VMs; `kubevirt` is the API for that, `restore_list` the VMs to start again
evacuation        waits until VMs have left the node; `drain_taint` makes KubeVirt move them
longhorn_gate     waits for volumes; `system_agent` and `rke2_config` prepare the host for Rancher
os_upgrade        the steps that replace the operating system; `os_rootfs` is the new one, `os_images` the images on the
                  disk, `elemental` the program, `os_record` what a repeated run needs to know
reboot            the reboot after the Pod has succeeded
repository_files  the ISO over HTTP; `iso_directory` is a mounted one, `release_files` are its descriptions
checksums         what both have in common: a file that was changed on its way is refused
image_import      the release's images into containerd; `kept_archives` are left for RKE2, `image_record` remembers them
node_images       what crictl says about images, and their removal
image_archive     archives of images as streams; `zstd_frames` and `tar_entries` check their two formats
background_work   the threads that write, flush and unpack
helm              the program helm; `helm_releases` are what it stores in the cluster
rancher           Rancher's upgrade; `rancher_chart` is its chart on the ISO
managed_charts    Harvester's charts; `chart_repository` serves them, `component_versions` are those of the release,
                  `workload_updates` suspends what KubeVirt would do to VMs
system_services   what the charts deploy; `rollouts` are their Pods, `addons` the add-ons
progress          shows the current step; `periodic_report` shows long work; `plan_events` are events on the UpgradePlan
"""

__all__ = [
    "catalogue",
    "checksums",
    "context",
    "errors",
    "helm",
    "host_programs",
    "host_tree",
    "plan_events",
    "progress",
    "release_files",
    "repository_files",
    "steps",
]
