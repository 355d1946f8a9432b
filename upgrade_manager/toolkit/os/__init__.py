"""The operating system of a node: the new system is written beside the running system and started by the next boot.

os_upgrade  the steps; `os_record` is the record for a repeated run
os_rootfs   the release's root file system on the host; `os_release` reads the name of the system in a tree
os_images   the images on the state partition; `elemental` writes the images, `image_check` checks the new one
state_file  elemental's record of the installation
state_device  the state partition's device, and its second mount
kernel_arguments  keeps the names of NICs by GRUB's arguments for the kernel; `grub_files` are the files of GRUB
running_image  the image that the host runs; `boot_assessment` has GRUB's mark of a boot that did not end
reboot_hold  the hold before the reboot, until a user lets the node go on
reboot      the reboot after the Pod has succeeded
"""

__all__ = [
    "kernel_arguments",
    "os_images",
    "os_record",
    "os_release",
    "os_rootfs",
    "os_upgrade",
    "reboot",
    "reboot_hold",
    "running_image",
    "state_device",
]
