"""Paths on a Harvester host."""

from __future__ import annotations

from upgrade_manager.api.keys import HOST_WORK

#: Directory of this package's own files, on the persistent partition; the operating system's own root is replaced.
WORK = HOST_WORK

RKE2_BIN = "/var/lib/rancher/rke2/bin"
CTR = f"{RKE2_BIN}/ctr"
CONTAINERD_SOCKET = "/run/k3s/containerd/containerd.sock"

#: The manifests of static Pods, which RKE2 writes when it starts.
POD_MANIFESTS = "/var/lib/rancher/rke2/agent/pod-manifests"
#: The folder in which containerd keeps images.
CONTAINERD = "/var/lib/rancher/rke2/agent/containerd"

#: The directory from which RKE2 imports archives at its next start.
RKE2_IMAGES = "/var/lib/rancher/rke2/agent/images"
#: The directory of the archives from which rancher-system-agent reads the images that it runs.
AGENT_IMAGES = "/var/lib/rancher/agent/images"

#: The files of an upgrade of the operating system: the download, its mount point, the log, and the record.
OS_WORK = f"{WORK}/os"
#: The partition of the operating system's images, which is mounted read-only.
STATE_PARTITION = "/run/initramfs/cos-state"
#: elemental's record of the installation.
STATE_FILE = f"{STATE_PARTITION}/state.yaml"
#: GRUB's marks of a boot after an upgrade (rancher/elemental-toolkit: 08_boot_assessment.yaml; from v1.3.0 on, they are
#: on the partition COS_GRUB, which Harvester's elemental does not use for them).
BOOT_ASSESSMENT = f"{STATE_PARTITION}/boot_assessment"
#: The place at which elemental looks for that partition (rancher/elemental-toolkit v1.1.7: pkg/constants/constants.go).
ELEMENTAL_STATE = "/run/cos/state"
#: The places at which elemental binds the folder of the new system and mounts its image, up to 1.1.7 and from 1.3.0 on
#: (rancher/elemental-cli v0.3.1, rancher/elemental-toolkit v1.3.0: pkg/constants/constants.go).
ELEMENTAL_MOUNTS = (
    "/run/cos/workingtree",
    "/run/cos/transition",
    "/run/elemental/workingtree",
    "/run/elemental/transition",
)
#: The image that the next boot starts.
ACTIVE_IMAGE = f"{STATE_PARTITION}/cOS/active.img"
#: The previous operating system, which starts when the active image does not start.
PASSIVE_IMAGE = f"{STATE_PARTITION}/cOS/passive.img"
#: The new image until elemental renames it.
TRANSITION_IMAGE = f"{STATE_PARTITION}/cOS/transition.img"
#: The root file system that elemental copies into the new image, and removes afterwards.
TRANSITION_TREE = f"{STATE_PARTITION}/cOS/transition.imgTree"
ELEMENTAL = "/usr/bin/elemental"
#: GRUB's variables, and the commands of users that GRUB runs.
GRUB_ENVIRONMENT = "/oem/grubenv"
GRUB_CUSTOM = "/oem/grubcustom"
KUBECTL = f"{RKE2_BIN}/kubectl"
KUBELET_CONFIG = "/var/lib/rancher/rke2/agent/kubelet.kubeconfig"
