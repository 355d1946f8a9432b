"""The rows of every upgrade that change a node; generic.py lists them among the others.

toolkit/os carries them out, in the commands post_drain and single_node_upgrade.
"""

from __future__ import annotations

from upgrade_manager.release.migrations.row import Place, Row, node_program

GRUB_FILES = Row(
    id="grub-files",
    place=Place.BEFORE_OS,
    step="The files of GRUB's variables and of users' own commands are created where they do not exist. With some "
    "firmware GRUB searches half an hour for a file that does not exist.",
    changes=("/oem/grubenv", "/oem/grubcustom"),
    done_if="both files exist",
    undo="None is needed.",
    sources=(node_program("v1.8.0", 736),),
)

KERNEL_ARGUMENTS = Row(
    id="kernel-arguments",
    place=Place.BEFORE_OS,
    step="An argument ifname=NAME:MAC for each physical NIC is appended to the kernel's arguments, unless one names "
    "its MAC: a NIC of another name would cost the node its network. So is multipath=off, unless the node was "
    "installed with external storage or has an argument about multipath. All must fit into GRUB's 1,024 bytes.",
    changes=("/oem/grubenv: third_party_kernel_args",),
    done_if="each physical NIC's MAC has an ifname, and an argument or the installation settles multipath",
    undo="The former value is recorded, and restored where the node keeps its operating system.",
    sources=(node_program("v1.8.0", 634), node_program("v1.8.0", 746)),
)

STATE_MOUNT = Row(
    id="state-mount",
    place=Place.BEFORE_OS,
    step="On a node whose state partition is a device of the device mapper, as after a boot by multipath, it is also "
    "mounted at /run/cos/state while elemental runs, which would mount it read-only otherwise.",
    changes=("the mount /run/cos/state, in the Pod only",),
    done_if="the device of the label COS_STATE is not below /dev/mapper",
    undo="It is unmounted after elemental, also after a failure.",
    sources=(node_program("v1.8.0", 63),),
)

STATE_FILE = Row(
    id="state-file",
    place=Place.BEFORE_OS,
    step="The record of the installation, state.yaml on the state partition, becomes state.yaml.bak if it lacks its "
    "label, as after an installation of v1.1: elemental would use the record, and writes a new one.",
    changes=("/run/initramfs/cos-state/state.yaml", "/run/initramfs/cos-state/state.yaml.bak"),
    done_if="the record does not exist, or has state.label",
    undo="None is needed; state.yaml.bak is kept.",
    sources=(node_program("v1.8.0", 10),),
)

POD_MANIFESTS = Row(
    id="pod-manifests",
    place=Place.BEFORE_REBOOT,
    step="RKE2's manifests of static Pods are removed right before the reboot: the kubelet would start those of the "
    "former release, before RKE2 writes its own.",
    changes=("/var/lib/rancher/rke2/agent/pod-manifests/*",),
    done_if="the node reboots",
    undo="None is needed: RKE2 writes them whenever it starts.",
    sources=(node_program("v1.8.0", 101),),
)

ROWS = (GRUB_FILES, KERNEL_ARGUMENTS, STATE_FILE, STATE_MOUNT, POD_MANIFESTS)
