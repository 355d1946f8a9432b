"""The part of each node: before, while and after Rancher drains it."""

from __future__ import annotations

from hack.original.entry import COMMON, CONTROLLER, NODE, Part, differently, left_out, same

_AT_BOOT = (
    "On a host that v1.5 or later installed, /oem/90_custom.yaml writes the file at each boot; on an older one an "
    "earlier upgrade has written it."
)
_PRELOAD = r"create +Plan\.\S+ cattle-system/upgrade-image-preload: "
_REBOOT = r"^pod-manifests +run +systemd-run "

PREPARE = Part(
    title="Each node: images",
    entries=(
        differently(
            "Plan of the preload: image rancher/harvester-upgrade of the previous release",
            f"{CONTROLLER}:805",
            rf"{_PRELOAD}spec\.upgrade\.image := ",
            "The toolkit image of the plan is used. The survey starts it on every node before, and names a node that "
            "can neither find nor pull it.",
        ),
        differently(
            "Plan of the preload: a deadline of 3,600 s",
            f"{COMMON}:420",
            rf"{_PRELOAD}spec\.jobActiveDeadlineSecs := 21600$",
            "The Jobs have six hours: with a slow disk or network an hour is too short for the import, and its end "
            "would fail the upgrade.",
        ),
        differently(
            "Plan of the preload: concurrency by the Setting upgrade-config",
            f"{COMMON}:420",
            rf"{_PRELOAD}spec\.concurrency := 3$",
            "spec.imagePreloadOption.concurrency of the UpgradePlan decides, which is part of the plan's record.",
        ),
        differently(
            "Plan of the preload: left out if the Setting upgrade-config says skip",
            f"{COMMON}:420",
            rf"{_PRELOAD}spec\.concurrency := ",
            "A negative spec.imagePreloadOption.concurrency of the UpgradePlan skips the preload.",
        ),
        same("upgrade-helper version-guard", NODE, r"^\d+/\d+ check-version$"),
        differently(
            "for each archive of common and rke2: its list without what ctr images ls names",
            NODE,
            r"host  ctr .* images list --quiet",
            "An archive counts as imported if containerd has all images of its list, also those of which another "
            "name is known.",
        ),
        same("ctr images import --no-unpack", NODE, r"^step import-images +run +ctr .* images import --no-unpack -$"),
        differently(
            "/var/lib/rancher/rke2/agent/images: the archives of rke2",
            NODE,
            r"^step (?:import-images|keep-archives) +create +file /var/lib/rancher/rke2/agent/images/rke2\.tar\.zst",
            "An archive is compared with the ISO's checksum before RKE2 sees it.",
        ),
        differently(
            "/var/lib/rancher/rke2/agent/images: the lists of rke2, before their archives",
            NODE,
            r"^step keep-archives +create +file /var/lib/rancher/rke2/agent/images/rke2\.txt",
            "The archive is written before its list: RKE2 pulls the images of a list that has no archive.",
        ),
        differently(
            "/var/lib/rancher/agent/images: the archives of agent",
            NODE,
            r"^step keep-archives +create +file /var/lib/rancher/agent/images/agent\.tar\.zst",
            "An archive is compared with the ISO's checksum before rancher-system-agent sees it.",
        ),
        differently(
            "/var/lib/rancher/agent/images: the lists of agent, before their archives",
            NODE,
            r"^step keep-archives +create +file /var/lib/rancher/agent/images/agent\.txt",
            "The archive is written before its list, as for rke2.",
        ),
    ),
)

PRE_DRAIN = Part(
    title="Each node: before its drain",
    entries=(
        differently(
            "/run/systemd/system/rancher-system-agent.service.d, removed with all that is in it",
            f"{NODE}:303",
            r"^step restore-system-agent +delete +file /run/systemd/system/rancher-system-agent\.service\.d/override",
            "Only the two files of the hold are removed: other files in the folder belong to a user.",
        ),
        same("systemctl daemon-reload", f"{NODE}:303", r"^step restore-system-agent +run +systemctl daemon-reload$"),
        differently(
            "systemctl restart rancher-system-agent, always",
            f"{NODE}:303",
            r"^step restore-system-agent +run +systemctl restart rancher-system-agent\.service$",
            "The agent restarts only where it was held back, and the step fails if it is not active afterwards.",
        ),
        same("a wait until Longhorn's volumes are healthy", f"{NODE}:307", r"wait-for-volumes"),
        differently(
            "a stop of the node's VMs that cannot be migrated",
            NODE,
            r"^step stop-vms +request +virtualmachines\.subresources\.kubevirt\.io default/\S+: stop$",
            "A VM is recorded before it is stopped, and its shutdown is awaited.",
        ),
        differently(
            "ConfigMap with the VMs to start again",
            NODE,
            r"^step record-vms +create +ConfigMap harvester-system/demo-restore-vm: data\.node-0 := ",
            "It is written before the first VM is stopped, so that an attempt that is killed loses none.",
        ),
        differently(
            "Node: taint kubevirt.io/drain=draining:NoSchedule",
            NODE,
            r"^step taint-node +patch +Node node-0: spec\.taints := .*kubevirt\.io/drain",
            "The wait adds the taint again when another client removes it, and says once which client that was.",
        ),
        same("a wait until no VM runs on the node", NODE, r"wait +VMs on node node-0: "),
        same(
            "a wait until the PodDisruptionBudgets of evacuations are deleted",
            NODE,
            r"wait-for-disruption-budgets",
        ),
        left_out(
            "/var/lib/rancher/rke2/server/manifests/rke2-canal-config.yaml, removed",
            f"{NODE}:419",
            r"rke2-canal-config",
            "Only installations of v1.0 and v1.1 have the file, and each later upgrade has removed it.",
        ),
        left_out(
            "/etc/rancher/rke2/config.yaml.d/40-disable-charts.yaml: three charts of snapshots",
            f"{NODE}:425",
            r"40-disable-charts",
            "The installation of v1.7.1 disables the three charts in its own configuration, and an upgrade from an "
            "older release has written the file.",
        ),
    ),
)

POST_DRAIN = Part(
    title="Each node: after its drain",
    entries=(
        differently(
            "/etc/rancher/rke2/config.yaml.d/99-max-pods.yaml, always, with kubelet-arg",
            f"{NODE}:435",
            r"^step write-rke2-config +create +file /etc/rancher/rke2/config\.yaml\.d/99-max-pods\.yaml := "
            r"\"kubelet-arg\+:",
            "The file is written only where no configuration names max-pods, and adds to the kubelet's arguments: "
            "without the plus sign those of all earlier files would be lost.",
        ),
        left_out(
            "/etc/rancher/rke2/config.yaml.d/99-z00-harvester-reserved-resources.yaml, where it does not exist",
            f"{NODE}:443",
            r"99-z00-harvester-reserved",
            _AT_BOOT,
        ),
        left_out(
            "/etc/rancher/rke2/config.yaml.d/91-harvester-cdi.yaml: nonroot-devices true, where it does not exist",
            f"{NODE}:459",
            r"91-harvester-cdi",
            _AT_BOOT,
        ),
        left_out(
            "/oem/91_cleanup_kubelet.yaml: removes the state of the kubelet's CPU manager at each boot",
            f"{NODE}:473",
            r"91_cleanup_kubelet",
            "/oem/90_custom.yaml of v1.4 and later does that, and every upgrade since v1.4 has written the file on "
            "older hosts, where it stays.",
        ),
        differently(
            "a wait without a limit until the kubelet reports the release's Kubernetes, without -rcN",
            NODE,
            r"wait-for-kubelet",
            "The step fails after an hour, and names the command for the agent's log.",
        ),
        same(
            "/var/lib/rancher/rke2/agent/images: the archives of rke2, removed",
            NODE,
            r"^step remove-archives +delete +file /var/lib/rancher/rke2/agent/images/rke2\.tar\.zst$",
        ),
        same(
            "/var/lib/rancher/rke2/agent/images: the lists of rke2, removed",
            NODE,
            r"^step remove-archives +delete +file /var/lib/rancher/rke2/agent/images/rke2\.txt$",
        ),
        same(
            "Node: taint kubevirt.io/drain, removed",
            NODE,
            r"^step remove-drain-taint +patch +Node node-0: spec\.taints := absent \(was .*kubevirt\.io/drain",
        ),
        left_out(
            "the network's move to NetworkManager, from v1.6 only",
            f"{NODE}:522",
            r"NetworkManager|nmconnection",
            "v1.7 has NetworkManager already; an upgrade from v1.6 to v1.8 is refused by both.",
        ),
        left_out(
            "/oem/92_hostname_override.yaml, from v1.6 only",
            f"{NODE}:591",
            r"92_hostname_override",
            "The upgrade to v1.7 has written the file where it is needed; an upgrade from v1.6 to v1.8 is refused.",
        ),
        same(
            "state.yaml without state.label: copied to state.yaml.bak",
            f"{NODE}:10",
            r"^state-file +create +file /run/initramfs/cos-state/state\.yaml\.bak",
        ),
        same(
            "state.yaml without state.label: removed",
            f"{NODE}:10",
            r"^state-file +delete +file /run/initramfs/cos-state/state\.yaml$",
        ),
        same(
            "passive.img: holes are dug",
            f"{NODE}:32",
            r"^step check-os +run +fallocate --dig-holes /run/initramfs/cos-state/cOS/passive\.img$",
        ),
        same(
            "the state partition mounted at /run/cos/state, if its device is below /dev/mapper",
            f"{NODE}:63",
            r"^state-mount +run +mount .*/dev/mapper/\S+ /run/cos/state$",
        ),
        same("this mount, ended after elemental", f"{NODE}:63", r"^state-mount +run +umount /run/cos/state$"),
        left_out(
            "/lib64 of the Pod bound over the host's while elemental runs, if the host's glibc is too old",
            f"{NODE}:711",
            r"mount .*lib64",
            "elemental of v1.8 runs with the glibc of v1.7. The step tries it before, and a program that does not "
            "start fails the attempt, after which the node keeps its system.",
        ),
        differently(
            "elemental upgrade --directory, with the size 3072",
            NODE,
            r"^step install-os +run +elemental upgrade .* --system\.uri dir:",
            "The size follows the release's files and is 3,072 MiB at least. The space is checked before, the image "
            "is compared with the download afterwards, and a failure makes the image that runs active again.",
        ),
        same(
            "/oem/grubenv, created where it does not exist",
            f"{NODE}:736",
            r"^kernel-arguments +create +file /oem/grubenv := ",
        ),
        same(
            "/oem/grubcustom, created where it does not exist",
            f"{NODE}:736",
            r"^grub-files +create +file /oem/grubcustom := \"\"",
        ),
        differently(
            "/oem/grubenv: third_party_kernel_args gets multipath=off, unless external storage is enabled or an "
            "argument has the word, after elemental",
            f"{NODE}:746",
            r"^kernel-arguments +create +file /oem/grubenv := .*third_party_kernel_args=multipath=off",
            "The arguments are written before elemental, after a check that all fit into GRUB's 1,024 bytes: "
            "a failure afterwards would leave a new system that boots without its network.",
        ),
        left_out(
            "/oem/99_disable_lh_multipathd.yaml, always written again",
            f"{NODE}:761",
            r"99_disable_lh_multipathd",
            "/oem/90_custom.yaml of v1.7.1 has the same stage, and the upgrades to v1.6 and v1.7 have written the file "
            "on older hosts, where it stays.",
        ),
        left_out(
            "/etc/ssh/sshd_config.d/sftp.conf: path /usr/libexec/ssh instead of /usr/lib/ssh",
            f"{NODE}:787",
            r"sftp",
            "The path differs in the operating system before that of v1.7 only.",
        ),
        differently(
            "/oem/grubenv: third_party_kernel_args gets ifname=NAME:MAC for each /sys/class/net/en*, by the address "
            "of a bond's member itself",
            f"{NODE}:634",
            r"^kernel-arguments +change +file /oem/grubenv := .* ifname=enp2s0:52:54:00:00:00:02",
            "Only physical NICs get one: the names of SR-IOV's virtual functions would fill GRUB's block, and their "
            "addresses change with each boot.",
        ),
        differently(
            "/oem/grubenv: the second member of a bond, which v1.7.1's upgrade has not named",
            f"{NODE}:634",
            r"^kernel-arguments +change +file /oem/grubenv := .* ifname=enp7s0:52:54:00:00:00:07",
            "It is written before elemental, as the others are.",
        ),
        differently(
            "/run/systemd/system/upgrade-reboot.service and /tmp/upgrade-reboot.sh, which read the container's state",
            f"{NODE}:101",
            rf"{_REBOOT}--unit=harvester-upgrade-reboot-",
            "A transient unit reads the Pod from the API server with the kubelet's credentials. A Pod that fails or "
            "is deleted ends the unit without a reboot.",
        ),
        same(
            "/var/lib/rancher/rke2/agent/pod-manifests/*, removed right before the reboot",
            f"{NODE}:101",
            rf"{_REBOOT}.*has succeeded, rebooting\"; rm -f \"\$7\"/\*; ",
        ),
        differently(
            "the reboot, ten seconds after the Pod's success",
            f"{NODE}:101",
            rf"{_REBOOT}.*systemctl reboot",
            "The reboot follows the Pod's success at once: only a Pod that has succeeded is reported as such.",
        ),
        differently(
            "/usr/local/upgrade_tmp and temporary folders of elemental, which stay",
            NODE,
            r"^step remove-os-download +run +umount ",
            "The download and its mounts are removed, and kept for the next attempt after a failure. The log of "
            "elemental stays in /usr/local/harvester-upgrade.",
        ),
    ),
)

PARTS = (PREPARE, PRE_DRAIN, POST_DRAIN)
