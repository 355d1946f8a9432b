"""The cluster's part up to Rancher and Fleet."""

from __future__ import annotations

from hack.original.entry import MANIFESTS, Part, differently, left_out, same

_CHART = r"patch +ManagedChart\.\S+ fleet-local/"
_HOLD = r"^system-agent-hold +create +Plan\.\S+ cattle-system/upgrade-agent-hold: "
_HELM = r"upgrade Helm release cattle-system/rancher: "
_CAPI = "Only a configuration whose Service is in cattle-provisioning-capi-system is deleted: another one of this name "
_BRANCH = (
    "Rancher 2.14 sets the address and the branch of an existing repository when it starts, and downloads what has "
    "changed (rancher/rancher pkg/data/dashboard/repo.go). "
)
_KEPT = (
    "Rancher's charts 2.14.0 and 2.15.0 render the same manifests from the old keys as from the new ones, so that the "
    "key stays as the installer or a user has set it."
)

BEFORE_RANCHER = Part(
    title="Before Rancher",
    entries=(
        same(
            "HelmChartConfig kube-system/rke2-multus, created where it does not exist: spec.failurePolicy abort",
            f"{MANIFESTS}:10",
            r"^multus-failure-policy +create .*/rke2-multus: spec\.failurePolicy := \"abort\"",
        ),
        same(
            "HelmChartConfig kube-system/rke2-multus with other values: spec.failurePolicy abort, the values stay",
            f"{MANIFESTS}:10",
            r"^multus-failure-policy +patch .*/rke2-multus: spec\.failurePolicy := \"abort\"",
        ),
        left_out(
            "a pause of 10 s after that",
            f"{MANIFESTS}:10",
            r"wait +.*rke2-multus.* 10 s",
            "Nothing depends on the pause: RKE2 reads the policy when it upgrades the chart, and the first node "
            "restarts RKE2 long after this step.",
        ),
        differently(
            "Setting overcommit-config without a value: its default becomes its value, from v1.7.0 to v1.7.9 only",
            f"{MANIFESTS}:85",
            r"^overcommit-config +patch .* overcommit-config: value := .*1600.* \(was \"\"\)",
            "The older release is compared as a version, so that a release candidate of v1.7 counts as v1.7. An "
            "upgrade that ends before Harvester's chart is changed clears the value again.",
        ),
        same(
            "ManagedChart fleet-local/harvester: spec.paused true",
            f"{MANIFESTS}:1225",
            rf"{_CHART}harvester: spec\.paused := true",
        ),
        same(
            "ManagedChart fleet-local/harvester-crd: spec.paused true",
            f"{MANIFESTS}:1225",
            rf"{_CHART}harvester-crd: spec\.paused := true",
        ),
        same(
            "ManagedChart fleet-local/rancher-monitoring-crd: spec.paused true",
            f"{MANIFESTS}:1225",
            rf"{_CHART}rancher-monitoring-crd: spec\.paused := true",
        ),
        same(
            "ManagedChart fleet-local/rancher-logging-crd: spec.paused true",
            f"{MANIFESTS}:1225",
            rf"{_CHART}rancher-logging-crd: spec\.paused := true",
        ),
    ),
)

AGENT_HOLD = Part(
    title="Hold of the system agents",
    entries=(
        differently(
            "Plan cattle-system/UPGRADE-skip-restart-rancher-system-agent, created",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.upgrade\.command",
            "The Plan is called PLAN-agent-hold. The manager creates it before the Job, so that it can remove the "
            "hold from all nodes also after a failure and after the deletion of the plan.",
        ),
        same(
            "this Plan: ten nodes at once",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.concurrency := 10$",
        ),
        same(
            "this Plan: on nodes with the label harvesterhci.io/managed=true",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.nodeSelector\.matchLabels\[harvesterhci\.io/managed\] := \"true\"$",
        ),
        differently(
            "this Plan: tolerates every taint",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.tolerations := \[",
            "The Plan tolerates the taints of control planes, cordoned, unreachable and drained nodes, and those of "
            "critical add-ons. A node with a user's own taint is shown before: the survey has the same tolerations and "
            "waits for it while the cluster is unchanged.",
        ),
        same(
            "this Plan: service account system-upgrade-controller",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.serviceAccountName := \"system-upgrade-controller\"$",
        ),
        differently(
            "this Plan: image registry.suse.com/bci/bci-base:16.0",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.upgrade\.image := ",
            "The toolkit image is used, which the survey has started on every node before: a node without a registry "
            "would wait for the other image.",
        ),
        same(
            "this Plan: runs in the root of the host",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.upgrade\.command := \[\"chroot\", \"/host\"",
        ),
        same(
            "host: rancher-system-agent.service.d/override.conf below /run/systemd/system names the file of variables",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.upgrade\.args, line \d+: EnvironmentFile=-/run/systemd/system/"
            r"rancher-system-agent\.service\.d/10-harvester-upgrade\.env",
        ),
        same(
            "host: rancher-system-agent.service.d/10-harvester-upgrade.env: INSTALL_RKE2_SKIP_ENABLE=true",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.upgrade\.args, line \d+: env_text=INSTALL_RKE2_SKIP_ENABLE=true$",
        ),
        same(
            "host: systemctl daemon-reload",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.upgrade\.args, line \d+: +systemctl daemon-reload$",
        ),
        same(
            "host: systemctl restart rancher-system-agent",
            f"{MANIFESTS}:1232",
            rf"{_HOLD}spec\.upgrade\.args, line \d+: +systemctl restart rancher-system-agent\.service$",
        ),
        differently(
            "a wait without a limit until all nodes have the label of this Plan",
            f"{MANIFESTS}:1232",
            r"^system-agent-hold +delete +Plan\.\S+ cattle-system/upgrade-agent-hold$",
            "The manager waits for managed nodes only, because no other node gets a Job of the Plan. While it waits "
            "the plan's message counts the nodes, and a node that is off becomes a blocker.",
        ),
        same(
            "this Plan, deleted",
            f"{MANIFESTS}:1232",
            r"^system-agent-hold +delete +Plan\.\S+ cattle-system/upgrade-agent-hold$",
        ),
        differently(
            "Node: the label of this Plan, which stays after the upgrade",
            f"{MANIFESTS}:1232",
            r"^system-agent-hold +patch +Node node-0: metadata\.labels\[plan\.upgrade\.cattle\.io/"
            r"upgrade-agent-hold\] := absent",
            "The manager removes the labels of its Plans from the nodes at the end of the upgrade.",
        ),
    ),
)

RANCHER = Part(
    title="Rancher",
    entries=(
        differently(
            "a wait for Cluster fleet-local/local of Cluster API: phase Provisioned, without a limit",
            f"{MANIFESTS}:534",
            r"^\d+/\d+ settle-cluster-before-rancher$",
            "The observed generation has to equal the object's for 30 s, as in Harvester v1.8.2, and the step fails "
            "after 30 minutes with the object's name.",
        ),
        differently(
            "ClusterRepo rancher-charts, deleted for Rancher to create it again",
            f"{MANIFESTS}:774",
            r"patch +ClusterRepo\.\S+ rancher-charts: spec\.forceUpdate := ",
            f"{_BRANCH}A repository whose charts are late is refreshed by spec.forceUpdate instead: a repeated "
            "attempt does not fail because the object does not exist.",
        ),
        left_out(
            "ClusterRepo rancher-rke2-charts, deleted for Rancher to create it again",
            f"{MANIFESTS}:774",
            r"ClusterRepo\.\S+ rancher-rke2-charts",
            f"{_BRANCH}Nothing of the upgrade waits for a chart in it.",
        ),
        left_out(
            "ClusterRepo rancher-partner-charts, deleted for Rancher to create it again",
            f"{MANIFESTS}:774",
            r"ClusterRepo\.\S+ rancher-partner-charts",
            f"{_BRANCH}Nothing of the upgrade waits for a chart in it.",
        ),
        left_out(
            "Setting chart-default-branch of Rancher, deleted for Rancher to create it again",
            f"{MANIFESTS}:774",
            r"chart-default-branch",
            "Rancher writes the default of each of its Settings when it starts. A value that a user has set would be "
            "lost by the deletion.",
        ),
        differently(
            "apiServerURL of ConfigMap cattle-fleet-system/fleet-controller, kept in the memory of the program",
            f"{MANIFESTS}:442",
            r"^fleet-agent .*annotations\[management\.harvesterhci\.io/original-fleet-address\]\.apiServerURL := \"h",
            "The value is recorded in an annotation of the ManagedChart harvester, because an attempt that is killed "
            "would lose what a program keeps in its memory.",
        ),
        differently(
            "apiServerCA of that ConfigMap, kept in the memory of the program",
            f"{MANIFESTS}:442",
            r"^fleet-agent .*annotations\[management\.harvesterhci\.io/original-fleet-address\]\.apiServerCA := \"",
            "The value is recorded in the same annotation, for the same reason.",
        ),
        differently(
            "Rancher's value features becomes multi-cluster-management=false,multi-cluster-management-agent=false,"
            "managed-system-upgrade-controller=false",
            f"{MANIFESTS}:781",
            rf"^rancher-features +{_HELM}value features := \"multi-cluster-management=false,multi-cluster-management-"
            r"agent=false,managed-system-upgrade-controller=false\"",
            "Only the keys that Rancher 2.14 refuses are removed, so that further features of a user stay. Afterwards "
            "the Feature multi-cluster-management is checked.",
        ),
        left_out("Rancher's value rancherImage, removed", f"{MANIFESTS}:785", rf"{_HELM}value rancherImage ", _KEPT),
        left_out(
            "Rancher's value rancherImagePullPolicy, removed",
            f"{MANIFESTS}:785",
            rf"{_HELM}value rancherImagePullPolicy ",
            _KEPT,
        ),
        differently(
            "Rancher's value rancherImageTag, removed",
            f"{MANIFESTS}:785",
            rf"{_HELM}value rancherImageTag := \"v2\.14\.0\"",
            "The key stays and gets the release's tag: Rancher's charts 2.14.0 and 2.15.0 render the same manifests "
            "from it as from image.tag.",
        ),
        left_out(
            "Rancher's value image.repository: rancher/rancher", f"{MANIFESTS}:785", rf"{_HELM}value image ", _KEPT
        ),
        left_out("Rancher's value image.pullPolicy: IfNotPresent", f"{MANIFESTS}:785", rf"{_HELM}value image ", _KEPT),
        differently(
            "Rancher's value image.tag: v2.14.0",
            f"{MANIFESTS}:785",
            rf"{_HELM}value rancherImageTag := \"v2\.14\.0\"",
            "Where the installation has image.tag, it gets the release's tag; v1.7.1's has rancherImageTag, which "
            "gives the same manifests.",
        ),
        same(
            "Rancher's value replicas with a witness among exactly three nodes: -3 becomes -2",
            f"{MANIFESTS}:759",
            rf"^witness-replicas +{_HELM}value replicas := -2 \(was -3\)",
        ),
        differently(
            "MutatingWebhookConfiguration mutating-webhook-configuration, deleted",
            f"{MANIFESTS}:712",
            r"^capi-webhooks +delete +MutatingWebhookConfiguration\.\S+ mutating-webhook-configuration$",
            f"{_CAPI}belongs to a user.",
        ),
        differently(
            "ValidatingWebhookConfiguration validating-webhook-configuration, deleted",
            f"{MANIFESTS}:712",
            r"^capi-webhooks +delete +ValidatingWebhookConfiguration\.\S+ validating-webhook-configuration$",
            f"{_CAPI}belongs to a user.",
        ),
        differently(
            "helm upgrade of cattle-system/rancher with --wait",
            f"{MANIFESTS}:785",
            r"pod   helm upgrade rancher .* --reset-values .* --history-max 10 --wait",
            "The values are given whole and those of the former chart are reset, and ten revisions are kept, so that "
            "the Secrets of old revisions do not fill etcd.",
        ),
        left_out(
            "a rollback of a Helm revision that has been pending for five minutes, once",
            f"{MANIFESTS}:154",
            r"helm rollback",
            "A rollback would start the previous Rancher on data that the new one may have converted. A revision that "
            "a killed helm has left is removed after ten minutes, and helm upgrades again (decision 0023).",
        ),
        same(
            "a wait until Rancher's Setting server-version is v2.14.0",
            f"{MANIFESTS}:785",
            r"wait-for-rancher(?:$|: already done)",
        ),
        same(
            "a wait for the Helm releases fleet, fleet-crd and rancher-webhook with the chart and app of the release",
            f"{MANIFESTS}:785",
            r"wait +Helm release cattle-fleet-system/fleet-crd has chart .* instead of fleet-crd-",
        ),
        same(
            "waits for the rollouts of Rancher, fleet-controller and rancher-webhook",
            f"{MANIFESTS}:785",
            r"^\d+/\d+ wait-for-rancher-dependencies$",
        ),
        same(
            "Secret cattle-system/stv-aggregation, empty, of type Opaque, where it does not exist",
            f"{MANIFESTS}:823",
            r"^aggregation-secret +create +Secret cattle-system/stv-aggregation: type := \"Opaque\"",
        ),
    ),
)

FLEET = Part(
    title="Fleet",
    entries=(
        differently(
            "a wait for the rollout of cattle-fleet-local-system/fleet-agent, without a limit",
            f"{MANIFESTS}:1370",
            r"wait +Deployment cattle-fleet-local-system/fleet-agent: ",
            "The step fails after 30 minutes, and names what Fleet reports and the command for its log.",
        ),
        differently(
            "a wait until Cluster API has observed a newer generation of fleet-local/local",
            f"{MANIFESTS}:534",
            r"^(?:\d+/\d+ settle-cluster-after-rancher|settle-cluster-after-rancher: already done)$",
            "The observed generation has to equal the object's. A repeated attempt, whose Rancher is new already, "
            "would wait for a newer generation without end.",
        ),
        differently(
            "Cluster fleet-local/local of Fleet: spec.redeployAgentGeneration becomes the deployed generation + 1",
            f"{MANIFESTS}:1370",
            r"^fleet-agent +patch +Cluster\.fleet\.cattle\.io fleet-local/local: spec\.redeployAgentGeneration := 1",
            "It is written only where the new controller has not replaced the agent by itself, and where no earlier "
            "attempt has asked for it.",
        ),
        differently(
            "a wait until the Deployment fleet-agent is a newer object",
            f"{MANIFESTS}:1390",
            r"wait +Cluster fleet-local/local \(fleet\.cattle\.io\): Fleet has not redeployed its agent",
            "The Pod of the agent has to be newer than the controller's, and the generation deployed: a Deployment "
            "that Fleet changes in place is not a newer object.",
        ),
        left_out(
            "a wait until the CRD clusters.fleet.cattle.io has status.agentTLSMode and the ConfigMap agentTLSMode",
            f"{MANIFESTS}:442",
            r"wait .*agentTLSMode",
            "The Helm releases fleet-crd and fleet are awaited in the chart version of the release before this point, "
            "which brings both.",
        ),
        same(
            "ConfigMap cattle-fleet-system/fleet-controller: data.config.apiServerURL restored where it differs",
            f"{MANIFESTS}:1421",
            r"^fleet-agent +patch +ConfigMap cattle-fleet-system/fleet-controller: data\.config\.apiServerURL := \"h",
        ),
        same(
            "ConfigMap cattle-fleet-system/fleet-controller: data.config.apiServerCA restored where it differs",
            f"{MANIFESTS}:1421",
            r"^fleet-agent +patch +ConfigMap cattle-fleet-system/fleet-controller: data\.config\.apiServerCA := \"LS0",
        ),
        differently(
            "a pause of 20 s after that",
            f"{MANIFESTS}:442",
            r"wait +it has to last 20 s",
            "The agent has to stay as new for 20 s, instead of a pause whatever happens meanwhile.",
        ),
        same(
            "a wait until the condition Imported of Fleet's cluster is newer than the ready fleet-controller",
            f"{MANIFESTS}:245",
            r"^\d+/\d+ redeploy-fleet-agent",
        ),
        same(
            "a wait until the Pod fleet-agent is newer than fleet-controller",
            f"{MANIFESTS}:245",
            r"^\d+/\d+ redeploy-fleet-agent",
        ),
        same(
            "a wait of 60 s at most until Fleet's cluster is Ready, after which the upgrade goes on",
            f"{MANIFESTS}:245",
            r"wait-for-fleet",
        ),
        left_out(
            "Cluster fleet-local/local of Rancher's provisioning: label "
            "provisioning.cattle.io/management-cluster-name=local",
            f"{MANIFESTS}:1363",
            r"management-cluster-name",
            "Clusters that were installed with Rancher 2.8 or later, or upgraded to it, have the label: all from "
            "which Harvester v1.7.1 can come.",
        ),
        left_out(
            "Cluster fleet-local/local of Rancher's provisioning: status.fleetWorkspaceName fleet-local",
            f"{MANIFESTS}:1363",
            r"fleetWorkspaceName",
            "Clusters that were installed with Rancher 2.8 or later, or upgraded to it, have the field: all from "
            "which Harvester v1.7.1 can come.",
        ),
    ),
)

PARTS = (BEFORE_RANCHER, AGENT_HOLD, RANCHER, FLEET)
