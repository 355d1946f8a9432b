"""A cluster of one node, and the controllers around all Jobs."""

from __future__ import annotations

from hack.original.entry import (
    COMMON,
    CONTROLLER,
    JOBS,
    NODE,
    NODES,
    REPOSITORY,
    SECRETS,
    Part,
    differently,
    left_out,
    same,
)

_STRATEGY = r"patch +Cluster\.provisioning\.cattle\.io fleet-local/local: spec\.rkeConfig\.upgradeStrategy\."
_CLUSTER = r"patch +Cluster\.provisioning\.cattle\.io fleet-local/local: "
_SKIP = r"^skip-multus-manifest +create +Plan\.\S+ cattle-system/upgrade-skip-on: "
_LOG = (
    "The logs of all Jobs stay in their Pods and in the plan's events, and an add-on for logging that the cluster has "
    "collects them as usual: a second one would change the cluster for the time of the upgrade."
)

SINGLE_NODE = Part(
    title="A cluster of one node",
    entries=(
        differently(
            "/run/systemd/system/rancher-system-agent.service.d, removed first of all",
            f"{NODE}:303",
            r"^step restore-system-agent +delete +file /run/systemd/system/rancher-system-agent\.service\.d/10-",
            "The agent is released right before the Kubernetes version is set, after all that can be refused.",
        ),
        left_out(
            "/etc/rancher/rke2/config.yaml.d/40-disable-charts.yaml, and the removal of rke2-canal-config.yaml",
            f"{NODE}:419",
            r"40-disable-charts|rke2-canal-config",
            "The same reasons hold as before the drain of one node of several.",
        ),
        same(
            "the operating system, downloaded before the VMs are stopped",
            NODE,
            r"^\d+/\d+ download-os$",
        ),
        differently(
            "a stop of all VMs",
            NODE,
            r"^step stop-vms +request +virtualmachines\.subresources\.kubevirt\.io default/vm-0: stop$",
            "VMs are stopped after the space, the download and the arguments of the kernel are checked, and recorded "
            "before if they are to start again.",
        ),
        left_out(
            "a wait of 180 s at most until no Bundle of Fleet is unready",
            NODE,
            r"wait +Bundle ",
            "cluster-upgrade has waited until Fleet has deployed all charts, and nothing has changed them since.",
        ),
        differently(
            "/etc/rancher/rke2/config.yaml.d/99-max-pods.yaml and the other files of a node after its drain",
            NODE,
            r"^step write-rke2-config +create +file /etc/rancher/rke2/config\.yaml\.d/99-max-pods\.yaml",
            "The file is written only where no configuration names max-pods. The others are left out for the reasons "
            "that stand at a node after its drain.",
        ),
        same(
            "Cluster fleet-local/local: spec.kubernetesVersion of the release",
            NODE,
            rf"^step set-kubernetes-version +{_CLUSTER}spec\.kubernetesVersion := \"v1\.35",
        ),
        same(
            "Cluster fleet-local/local: spec.rkeConfig as an empty patch, without provisionGeneration",
            NODE,
            r"api   patch /apis/provisioning\.cattle\.io/\S+/clusters/local .*\"rkeConfig\":\{\}",
        ),
        same("a wait for the kubelet", NODE, r"wait +node node-0: it runs Kubernetes v1\.34"),
        same(
            "the archives of rke2, removed",
            NODE,
            r"^step remove-archives +delete +file /var/lib/rancher/rke2/agent/images/rke2\.tar\.zst$",
        ),
        differently(
            "elemental, the arguments of the kernel and the reboot, as after the drain of one node of several",
            NODE,
            r"^step install-os +run +elemental upgrade .* --system\.uri dir:",
            "All of it differs from the original as on a node of several, for the same reasons.",
        ),
    ),
)

AROUND = Part(
    title="The controllers around the Jobs",
    entries=(
        differently(
            "Upgrade: status.previousVersion by the Setting server-version",
            f"{CONTROLLER}:686",
            r"condition  Available=True \(Executable\) Upgrading from v1\.7\.1 to v1\.8\.0",
            "UpgradePlan has the same field, which the condition's message shows.",
        ),
        differently(
            "a check of the minimum version, twice, which annotation harvesterhci.io/skip-version-check skips",
            f"{CONTROLLER}:788",
            r"^\d+/\d+ check-version$",
            "The webhook and Initialize check it, and the node's Job again. spec.force skips it, and also refused are "
            "pairs of releases whose steps are not known.",
        ),
        left_out(
            "Setting upgrade-config, read for the preload, the pauses, restoreVM and the log",
            f"{CONTROLLER}:805",
            r"upgrade-config",
            "These options are fields of the UpgradePlan, so that each upgrade shows with which it was carried out.",
        ),
        left_out(
            "UpgradeLog with a logging operator, fluentbit and fluentd",
            f"{CONTROLLER}:133",
            r"upgradelog|UpgradeLog",
            _LOG,
        ),
        left_out("PersistentVolumeClaim log-archive", f"{CONTROLLER}:133", r"log-archive", _LOG),
        differently(
            "Plan cattle-system/UPGRADE-skip-manifests-apply on clusters of several nodes, before kubernetesVersion",
            f"{CONTROLLER}:429",
            rf"{_SKIP}spec\.upgrade\.command := ",
            "The Plan is called PLAN-skip-on, and an entry of the ledger is written before it.",
        ),
        differently(
            "host: /var/lib/rancher/rke2/server/manifests/rke2-multus.yaml.skip, where the folder exists",
            f"{COMMON}:247",
            rf"{_SKIP}spec\.upgrade\.args, line \d+: file=/var/lib/rancher/\S+/rke2-multus\.yaml\.skip$",
            "The file has a text by which it is known as the upgrade's: one that a user has placed stays.",
        ),
        same("this Plan: as many nodes at once as there are", f"{COMMON}:247", rf"{_SKIP}spec\.concurrency := 3$"),
        differently(
            "this Plan: image rancher/harvester-upgrade of the previous release",
            f"{COMMON}:247",
            rf"{_SKIP}spec\.upgrade\.image := ",
            "The toolkit image of the plan is on every node already.",
        ),
        differently(
            "this Plan: tolerates also nodes that are not ready, or whose network is unavailable",
            f"{COMMON}:247",
            rf"{_SKIP}spec\.tolerations := .*node\.kubernetes\.io/unreachable",
            "An unreachable node is tolerated. On a node that is not Ready the Job starts once it is Ready; "
            "the plan names the node meanwhile.",
        ),
        differently(
            "Upgrade: annotation harvesterhci.io/apply-skip-rke2-manifests-plan-completed",
            f"{CONTROLLER}:491",
            r"Plan cattle-system/upgrade-skip-on: hold of RKE2's chart rke2-multus; done on 0 of 3 nodes",
            "The ledger of the plan says that the change has begun, and the labels of the nodes where it is done.",
        ),
        differently(
            "Plan …-remove after success, failure and deletion",
            f"{CONTROLLER}:474",
            r"^skip-multus-manifest +create +Plan\.\S+ cattle-system/upgrade-skip-off: spec\.upgrade\.command",
            "It runs as soon as the first Plan has begun: in the original a change that ended on some nodes only is "
            "never undone. Afterwards RKE2's own Job for the chart is awaited.",
        ),
        differently(
            "Setting replica-replenishment-wait-interval of Longhorn: 1800 if it is lower",
            f"{CONTROLLER}:439",
            r"patch +Setting\.longhorn\.io longhorn-system/replica-replenishment-wait-interval: value := \"1800\"",
            "The original is recorded before the change.",
        ),
        differently(
            "Setting replica-replenishment-wait-interval: the original at the end",
            f"{CONTROLLER}:602",
            r"replica-replenishment-wait-interval: value := \"1800\" then \"600\"",
            "A value that a user has set meanwhile stays.",
        ),
        differently(
            "Addon kube-system/descheduler: spec.enabled false",
            f"{CONTROLLER}:981",
            r"patch +Addon\.\S+ kube-system/descheduler: spec\.enabled := false",
            "The original is recorded before the change.",
        ),
        differently(
            "Addon kube-system/descheduler: spec.enabled true at the end",
            f"{CONTROLLER}:1102",
            r"patch +Addon\.\S+ kube-system/descheduler: spec\.enabled := false then true",
            "It is written only if it was true before.",
        ),
        same(
            "Cluster fleet-local/local: spec.kubernetesVersion of the release",
            f"{CONTROLLER}:717",
            rf"^phase NodeUpgrade +{_CLUSTER}spec\.kubernetesVersion := \"v1\.35",
        ),
        same(
            "Cluster fleet-local/local: spec.rkeConfig.provisionGeneration + 1",
            f"{CONTROLLER}:717",
            rf"{_CLUSTER}spec\.rkeConfig\.provisionGeneration := 4 \(was 3\)",
        ),
        same(
            "Cluster fleet-local/local: one control plane and one worker at a time",
            f"{CONTROLLER}:717",
            rf"{_STRATEGY}controlPlaneConcurrency := \"1\"",
        ),
        same(
            "Cluster fleet-local/local: options of the drain",
            f"{CONTROLLER}:717",
            rf"{_STRATEGY}controlPlaneDrainOptions\.enabled := true",
        ),
        differently(
            "Cluster fleet-local/local: hooks harvesterhci.io/pre-hook and harvesterhci.io/post-hook",
            f"{CONTROLLER}:717",
            rf"{_STRATEGY}controlPlaneDrainOptions\.preDrainHooks := .*management\.harvesterhci\.io/pre-hook",
            "The hooks have other names, so that the controllers of Harvester do not acknowledge them.",
        ),
        differently(
            "machine-plan Secret: the pending pre-hook acknowledged, one node at a time",
            f"{SECRETS}:37",
            r"patch +Secret fleet-local/custom-\S+-machine-plan: metadata\.annotations"
            r"\[management\.harvesterhci\.io/pre-hook\]",
            "A JSON patch acknowledges exactly the hook that was observed.",
        ),
        differently(
            "machine-plan Secret: the pending post-hook acknowledged",
            f"{NODES}:33",
            r"patch +Secret fleet-local/custom-\S+-machine-plan: metadata\.annotations"
            r"\[management\.harvesterhci\.io/post-hook\]",
            "The node has to be Ready, beside running the release's operating system.",
        ),
        left_out(
            "Upgrade: annotation harvesterhci.io/node-upgrade-pause-map",
            f"{SECRETS}:189",
            r"pause-map",
            "spec.nodeUpgradeOption.pauseNodes of the UpgradePlan names the nodes to pause.",
        ),
        differently(
            "Node: annotation harvesterhci.io/pendingOSImage, the release's operating system",
            f"{JOBS}:304",
            r"patch +Node node-\d: metadata\.annotations\[management\.harvesterhci\.io/pendingOSImage\] := \"Harvester",
            "The annotation has another prefix, and is removed at the end.",
        ),
        same(
            "Job of restore-vm for each node that is not a witness",
            f"{JOBS}:314",
            r"create +Job\.batch \S+-restore-vm-node-0: \S+\.args := \[\"restore-vm\"",
        ),
        differently(
            "Jobs: hostNetwork, hostIPC and hostPID",
            f"{COMMON}:498",
            r"create +Job\.batch \S+-pre-drain-node-0: spec\.template\.spec\.hostPID := true$",
            "Only hostPID is needed, for programs of the host's systemd.",
        ),
        same(
            "Jobs: removed seven days after their end",
            f"{COMMON}:498",
            r"create +Job\.batch \S+: spec\.ttlSecondsAfterFinished := 604800$",
        ),
        same(
            "image cleanup: the images that only the previous list has",
            f"{REPOSITORY}:358",
            r"create +Secret \S+/upgrade-image-cleanup-\S+: data\[images\.gz\] := .*rancher/rancher:v2\.13\.1",
        ),
        same(
            "image cleanup: without harvester-upgrade, longhorn-engine and -instance-manager, fluentd and fluent-bit",
            f"{COMMON}:74",
            r"create +Secret \S+/upgrade-image-cleanup-\S+: data\[images\.gz\] := "
            r"(?!.*(?:harvester-upgrade|longhorn-engine|instance-manager|fluent))",
        ),
        differently(
            "image cleanup: one crictl rmi of all images, whose errors are ignored",
            f"{COMMON}:74",
            r"create +Plan\.\S+ cattle-system/upgrade-image-cleanup: spec\.upgrade\.args := .*crictl rmi",
            "The images are removed one by one, on one node after the other, so that one that is in use does not keep "
            "the others.",
        ),
        differently(
            "KubeVirt: workloadUpdateMethods [LiveMigrate] at the end",
            f"{CONTROLLER}:1006",
            r"^kubevirt-update-methods +patch +ManagedChart\.\S+ fleet-local/harvester: .*workloadUpdateMethods := \[\]"
            r" then absent",
            "The list that was recorded is given back as the chart's value, also where it was another one.",
        ),
        left_out(
            "ManagedChart fleet-local/harvester: the exception in spec.diff.comparePatches, removed at the end",
            f"{CONTROLLER}:1006",
            r"comparePatches",
            "There is none to remove; after Harvester's toolkit the manager removes it.",
        ),
        differently(
            "the four ManagedCharts: spec.paused false at the end",
            f"{CONTROLLER}:647",
            r"^\d+/\d+ unpause-charts$",
            "The command cluster-upgrade resumes them at its end, also after a failure, and keeps one paused that a "
            "user had paused.",
        ),
        differently(
            "Cluster fleet-local/local: rkeConfig keeps provisionGeneration and registries only, also after a failure",
            f"{CONTROLLER}:544",
            rf"{_STRATEGY}controlPlaneConcurrency := \"1\" then absent",
            "Only what the upgrade has set is given back. After a failure the hooks stay: without them Rancher would "
            "upgrade the other nodes without a drain.",
        ),
        left_out(
            "the repository's Deployment, protected from deletion by Harvester's webhook",
            "pkg/webhook/resources/deployment",
            r"upgradeComponent",
            "Harvester's webhook looks for a running Upgrade, which does not exist here. A Deployment that is deleted "
            "or scaled down is created again at the next reconcile.",
        ),
        left_out(
            "a reconcile every two minutes, and every 20 s for nodes",
            f"{COMMON}:32",
            r"requeue",
            "Watches start a reconcile with each change; only what cannot be watched is polled.",
        ),
    ),
)

PARTS = (SINGLE_NODE, AROUND)
