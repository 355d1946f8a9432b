"""The cluster's part from the chart repository to the add-ons."""

from __future__ import annotations

import re

from hack.original.entry import LIBRARY, MANIFESTS, Entry, Part, differently, left_out, same

_CHART = r"patch +ManagedChart\.\S+ fleet-local/"
_ADDON = r"^addons +patch +Addon\.\S+ "
_OLDER = "The change is for releases before v1.7, from which v1.8.0 cannot be reached."
_INFORMATION = (
    "The annotation informs only: no controller reads it. The plan's status has the name, both versions and the times."
)
_DELETED = (
    "v1.7.1 has the add-on, so that only a user can have deleted it, and its values are long and depend on the cluster."
)
_VALUES = (
    "The version is that of the new repository's index, and of the values only the image's tag changes: the original "
    "replaces all values, and with them those of users."
)


def _chart(name: str, version: str, where: str, *, step: str) -> tuple[Entry, ...]:
    return (
        same(
            f"ManagedChart fleet-local/{name}: spec.version {version}",
            where,
            rf"{_CHART}{name}: spec\.version := \"{re.escape(version)}\"",
        ),
        same(
            f"ManagedChart fleet-local/{name}: spec.paused false",
            where,
            rf"{_CHART}{name}: spec\.paused := true then false",
        ),
        same(
            f"ManagedChart fleet-local/{name}: spec.timeoutSeconds one more, 600 if it is above 800",
            where,
            rf"{_CHART}{name}: spec\.timeoutSeconds := 601 \(was 600\)",
        ),
        *(
            left_out(
                f"ManagedChart fleet-local/{name}: annotation upgrade.harvesterhci.io/last-upgrade-{one}",
                where,
                rf"{_CHART}{name}: .*last-upgrade-{one}",
                _INFORMATION,
            )
            for one in ("name", "target-version", "time")
        ),
        same(
            f"a wait until ManagedChart fleet-local/{name} is ready in this version and a newer generation",
            where,
            rf"^\d+/\d+ {step}",
        ),
    )


REPOSITORY = Part(
    title="Chart repository and CDI",
    entries=(
        same(
            "Deployment cattle-system/harvester-cluster-repo: image rancher/harvester-cluster-repo:v1.8.0",
            f"{MANIFESTS}:882",
            r"patch +Deployment\.apps cattle-system/harvester-cluster-repo: .*image := "
            r"\"rancher/harvester-cluster-repo:v1\.8\.0\"",
        ),
        same(
            "a wait for its rollout",
            f"{MANIFESTS}:882",
            r"wait +Deployment cattle-system/harvester-cluster-repo: ",
        ),
        same(
            "ClusterRepo harvester-charts: spec.forceUpdate one second after the last download",
            f"{MANIFESTS}:882",
            r"patch +ClusterRepo\.\S+ harvester-charts: spec\.forceUpdate := ",
        ),
        same(
            "a wait until the index is downloaded",
            f"{MANIFESTS}:882",
            r"wait +ClusterRepo harvester-charts is not downloaded yet",
        ),
        differently(
            "CustomResourceDefinition cdis.cdi.kubevirt.io, applied in every upgrade",
            f"{MANIFESTS}:1473",
            r"^cdi-definition +patch +CustomResourceDefinition\.\S+ cdis\.cdi\.kubevirt\.io: spec\.",
            "The definition is read from the release's own chart, and written only where something of it is missing.",
        ),
        left_out(
            "Secret local-rke-state: type rke.cattle.io/cluster-state instead of Opaque",
            f"{MANIFESTS}:847",
            r"local-rke-state",
            _OLDER,
        ),
        left_out(
            "Ingress cattle-system/rancher-expose: ingressClassName",
            f"{MANIFESTS}:923",
            r"rancher-expose",
            _OLDER,
        ),
        left_out(
            "Setting containerd-registry: annotation harvesterhci.io/upgrade-patched, without registries in rkeConfig",
            f"{MANIFESTS}:1342",
            r"containerd-registry|upgrade-patched",
            "The annotation lets Harvester copy the Setting into rkeConfig, which Harvester v1.7 does with each change "
            "of the Setting: an empty list means that there are no registries.",
        ),
        left_out(
            "ClusterNetwork vlan: finalizers removed, from v1.0.3", f"{MANIFESTS}:1335", r"ClusterNetwork", _OLDER
        ),
        left_out(
            "ClusterRole harvesterhci.io:csi-driver, before v1.4.0",
            f"{MANIFESTS}:1423",
            r"csi-driver",
            _OLDER,
        ),
        left_out("a further migration of older releases", f"{MANIFESTS}:1488", r"untilv1|whereabouts", _OLDER),
    ),
)

HARVESTER = Part(
    title="Harvester's charts",
    entries=(
        left_out(
            "KubeVirt harvester-system/kubevirt: workloadUpdateMethods emptied directly",
            f"{MANIFESTS}:1022",
            r"patch +KubeVirt\.",
            "The list is emptied by a value of Harvester's chart: Fleet refuses to deploy a field that another client "
            "has written (harvester/harvester#10677), and Harvester v1.8.2 does the same.",
        ),
        left_out(
            "ManagedChart fleet-local/harvester: an exception for that list in spec.diff.comparePatches",
            f"{MANIFESTS}:992",
            r"comparePatches",
            "Fleet needs no exception for a list that the chart itself sets. After Harvester's toolkit, which may "
            "write one, the manager removes it.",
        ),
        *_chart("harvester-crd", "1.8.0", f"{MANIFESTS}:1036", step="upgrade-harvester-crd"),
        *_chart("harvester", "1.8.0", f"{MANIFESTS}:1061", step="upgrade-harvester"),
        left_out(
            "ManagedChart fleet-local/harvester: value storageClass.defaultStorageClass false, with another default",
            f"{MANIFESTS}:1083",
            r"defaultStorageClass",
            "The chart of v1.8.0 looks for another default StorageClass itself.",
        ),
        left_out(
            "ManagedChart fleet-local/harvester: Longhorn's nodeDrainPolicy allow-if-replica-is-stopped, unless set",
            f"{MANIFESTS}:946",
            r"nodeDrainPolicy",
            "An installation of v1.7.1 has the value, and older ones got it by an earlier upgrade.",
        ),
        left_out(
            "ManagedChart fleet-local/harvester: Longhorn's detachManuallyAttachedVolumesWhenCordoned true, unless set",
            f"{MANIFESTS}:946",
            r"detachManuallyAttachedVolumesWhenCordoned",
            "An installation of v1.7.1 has the value, and older ones got it by an earlier upgrade.",
        ),
        left_out(
            "ManagedChart fleet-local/harvester: Longhorn's concurrentAutomaticEngineUpgradePerNodeLimit as a text, "
            "which is null where the value does not exist",
            f"{MANIFESTS}:981",
            r"concurrentAutomaticEngineUpgradePerNodeLimit",
            "The text null is a defect of the original: it stands where there was no value. A number has become a text "
            "in the upgrade to v1.7 already.",
        ),
        same(
            "a wait for KubeVirt's version and its phase Deployed",
            f"{MANIFESTS}:564",
            r"wait-for-kubevirt",
        ),
        differently(
            "a wait without a limit until longhorn-manager has the release's image on exactly the managed nodes",
            f"{MANIFESTS}:588",
            r"wait-for-longhorn",
            "The DaemonSet's own count is used, and the Pods on each of Harvester's nodes but witnesses. A Pod on a "
            "further node does not end the upgrade, and the step fails after an hour.",
        ),
        differently(
            "a wait without a limit for one instance manager of the v1 engine with the release's image on each node",
            f"{MANIFESTS}:623",
            r"wait-for-instance-managers",
            "The image is that of longhorn-manager's own option, not a checksum of labels. The step fails after an "
            "hour with the node's name.",
        ),
        differently(
            "the same for the v2 engine, if Harvester's Setting enables it",
            f"{MANIFESTS}:623",
            r"wait-for-instance-managers",
            "A node whose label disables the v2 engine is left out: no instance manager would run there.",
        ),
        *_chart("rancher-monitoring-crd", "108.0.2+up77.9.1-rancher.11", MANIFESTS, step="upgrade-monitoring-crd"),
        *_chart("rancher-logging-crd", "108.0.2+up4.10.0-rancher.18", MANIFESTS, step="upgrade-logging-crd"),
        differently(
            "ManagedChart fleet-local/kubeovn-operator-crd: applied whole, with spec.version 1.15.4",
            f"{LIBRARY}:735",
            rf"^kubeovn-operator-crd +{_CHART}kubeovn-operator-crd: spec\.version := \"1[.]15[.]4\"",
            "Only version, time-out and pause change. The chart is paused before Rancher and resumed here, and is not "
            "created where it does not exist.",
        ),
        differently(
            "a wait of 60 s at most for kubeovn-operator-crd",
            f"{LIBRARY}:735",
            r"^\d+/\d+ upgrade-kubeovn-crd",
            "Fleet has 30 minutes to deploy it, as for the other charts: a chart in error keeps Fleet's cluster from "
            "being ready.",
        ),
    ),
)


def _addon(name: str, tag: str) -> tuple[Entry, ...]:
    return (
        same(
            f"Addon harvester-system/{name}: spec.version 1.8.0",
            f"{LIBRARY}:322",
            rf"{_ADDON}harvester-system/{name}: spec\.version := \"1\.8\.0\"",
        ),
        differently(
            f"Addon harvester-system/{name}: spec.valuesContent with image.tag {tag}",
            f"{LIBRARY}:322",
            rf"{_ADDON}harvester-system/{name}: spec\.valuesContent := \"image:\\n  tag: {tag}\\n",
            _VALUES,
        ),
        differently(
            f"Addon harvester-system/{name}, created disabled where it does not exist",
            f"{LIBRARY}:322",
            rf"^addons +create +Addon\.\S+ harvester-system/{name}: spec\.enabled := false",
            "Only NotFound counts as absent: in the original an error of the API server does, too, and the add-on is "
            "applied as disabled.",
        ),
    )


ADDONS = Part(
    title="Add-ons",
    entries=(
        *_addon("vm-import-controller", "v1.8.0"),
        *_addon("pcidevices-controller", "v1.8.0"),
        *_addon("harvester-seeder", "v1.8.0"),
        *_addon("nvidia-driver-toolkit", "v1.8-20260424"),
        same(
            "Addon harvester-system/nvidia-driver-toolkit: a user's driverLocation stays",
            f"{LIBRARY}:322",
            rf"{_ADDON}harvester-system/nvidia-driver-toolkit: spec\.valuesContent := .*"
            r"driverLocation: https://files\.example\.com/driver\.run",
        ),
        left_out(
            "Addon kube-system/descheduler: spec.version 0.33.0 and its values, which v1.7.1 has",
            f"{LIBRARY}:322",
            rf"{_ADDON}kube-system/descheduler: ",
            "The version is the same in both releases, so that nothing is written; a user's values stay.",
        ),
        left_out(
            "Addon kube-system/descheduler, created disabled where it does not exist",
            f"{LIBRARY}:322",
            r"^addons +create +Addon\.\S+ kube-system/descheduler",
            _DELETED,
        ),
        same(
            "Addon kube-system/kubeovn-operator: spec.version 1.15.4, without its values",
            f"{LIBRARY}:322",
            rf"{_ADDON}kube-system/kubeovn-operator: spec\.version := \"1\.15\.4\"",
        ),
        left_out(
            "Addon kube-system/kubeovn-operator, created disabled where it does not exist",
            f"{LIBRARY}:735",
            r"^addons +create +Addon\.\S+ kube-system/kubeovn-operator",
            _DELETED,
        ),
        same(
            "Addon cattle-monitoring-system/rancher-monitoring: spec.version",
            f"{LIBRARY}:322",
            rf"{_ADDON}cattle-monitoring-system/rancher-monitoring: spec\.version := \"108\.0\.2\+up77\.9\.1",
        ),
        left_out(
            "Addon rancher-monitoring: value rancherMonitoring.enabled false, if it does not exist",
            f"{LIBRARY}:322",
            r"rancher-monitoring: spec\.valuesContent",
            "Releases since v1.7.0 have the value.",
        ),
        left_out(
            "Addon rancher-monitoring: value kube-state-metrics.metricLabelsAllowlist, if it does not exist",
            f"{LIBRARY}:322",
            r"rancher-monitoring: spec\.valuesContent",
            "Releases since v1.7.0 have the value.",
        ),
        same(
            "Addon cattle-logging-system/rancher-logging: spec.version",
            f"{LIBRARY}:322",
            rf"{_ADDON}cattle-logging-system/rancher-logging: spec\.version := \"108\.0\.2\+up4\.10\.0",
        ),
        differently(
            "Addon cattle-logging-system/rancher-logging: the event router's image in its values",
            f"{LIBRARY}:322",
            rf"{_ADDON}cattle-logging-system/rancher-logging: spec\.valuesContent := .*harvester-eventrouter:",
            "The image is replaced in the text, so that comments and the order of a user's values stay; as YAML the "
            "result is equal.",
        ),
        differently(
            "a wait of 300 s at most for monitoring and logging, after which the upgrade goes on",
            f"{LIBRARY}:322",
            r"wait +Addon cattle-monitoring-system/rancher-monitoring .* is AddonUpdating",
            "All enabled add-ons are awaited, for 20 minutes together. One that is not deployed then is named by the "
            "event AddonNotDeployed.",
        ),
        differently(
            "a wait of 90 s at most until no Bundle of Fleet is unready, after which the upgrade goes on",
            f"{LIBRARY}:371",
            r"settle-charts",
            "The wait is for the five ManagedCharts of the upgrade, and the step fails after 30 minutes: nodes are not "
            "drained while Fleet still deploys Harvester. A Bundle of a user does not matter.",
        ),
    ),
)

PARTS = (REPOSITORY, HARVESTER, ADDONS)
