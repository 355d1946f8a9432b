"""The checks of a node before the upgrade changes anything on it; the command survey runs them, and only reads.

checks            the table of the checks; `finding` is a check's result in words
room              the space for the new operating system and its download
boot_slot         the image that the node runs
oem_files         users' files in /oem
boot_arguments    the room for the names of the NICs
mapper_device     the state partition of a node that boots by multipath
time_sync         the clock
"""

__all__ = ["checks"]
