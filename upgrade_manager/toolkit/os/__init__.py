"""The operating system of a node: the new one is written beside the running one, and the next boot starts it.

os_upgrade  the steps; `os_record` is what a repeated run needs to know
os_rootfs   the release's root file system on the host; `os_release` says which system a tree holds
os_images   the images on the state partition; `elemental` writes them
reboot      the reboot after the Pod has succeeded
"""

__all__ = ["os_release", "os_rootfs", "os_upgrade", "reboot"]
