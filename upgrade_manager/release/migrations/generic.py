"""The rows of every upgrade, whatever its releases; pairs.py adds those of the pair.

toolkit/charts and toolkit/commands/cluster_upgrade.py carry them out. nodes.py has those of a node; the manager carries
out those of hosts.py (pipeline/host_changes.py) and of pipeline/settings/overrides.py.
"""

from __future__ import annotations

from upgrade_manager.release.migrations import hosts, nodes
from upgrade_manager.release.migrations.addons import ADDONS as KNOWN_ADDONS
from upgrade_manager.release.migrations.row import Discussion, Executor, Place, Row, Source, library, manifests

MULTUS = Row(
    id="multus-failure-policy",
    place=Place.BEFORE_RANCHER,
    step="The failure policy of RKE2's chart rke2-multus is set to abort. By default RKE2 would reinstall the chart "
    "after an interrupted upgrade that fails when it is repeated, and the deletion of its CustomResourceDefinition "
    "would delete all VM networks.",
    changes=("HelmChartConfig kube-system/rke2-multus: spec.failurePolicy",),
    done_if="spec.failurePolicy is abort",
    undo="None: the policy stays.",
    sources=(
        manifests("v1.8.0", 10),
        Source(repository="k3s-io/helm-controller", tag="v0.17.7", path="pkg/controllers/chart/chart.go", line=547),
        Discussion(repository="k3s-io/klipper-helm", number=28),
    ),
)

#: The value of Rancher's chart on all clusters, and the value for two nodes that can run Rancher: negative numbers are
#: the most replicas, one on each node.
THREE_REPLICAS, TWO_REPLICAS = -3, -2

WITNESS_REPLICAS = Row(
    id="witness-replicas",
    place=Place.WITH_RANCHER,
    step="Where one of exactly three nodes is a witness, the replicas of Rancher's chart become -2. A third Pod "
    "could not be scheduled.",
    changes=("Helm release cattle-system/rancher: value replicas",),
    done_if="the value is not -3, no node is a witness, or the cluster has not three nodes",
    undo="None is needed.",
    sources=(manifests("v1.8.0", 759),),
)

FLEET = Row(
    id="fleet-agent",
    place=Place.AFTER_RANCHER,
    step="The API server's address and authority in the configuration of Fleet's controller, which are recorded before "
    "Rancher is upgraded, are restored, and Fleet replaces its agent. An agent that is replaced later would deploy the "
    "previous release of Harvester's charts again.",
    changes=(
        "ManagedChart fleet-local/harvester: annotation management.harvesterhci.io/original-fleet-address",
        "ConfigMap cattle-fleet-system/fleet-controller: apiServerURL and apiServerCA in data.config",
        "Cluster fleet-local/local of Fleet: spec.redeployAgentGeneration",
    ),
    done_if="both values equal the record, the cluster is imported since Fleet's controller started, and the Pod of "
    "its agent is not older than the controller's",
    undo="None is needed.",
    sources=(
        manifests("v1.8.0", 245),
        manifests("v1.8.0", 442),
        Discussion(repository="harvester/harvester", number=6851),
    ),
)

CDI = Row(
    id="cdi-definition",
    place=Place.WITH_CHARTS,
    step="The CustomResourceDefinition of CDI's own kind is applied from the archive of Harvester's chart: Helm never "
    "upgrades definitions that a chart has in its folder crds.",
    changes=("CustomResourceDefinition cdis.cdi.kubevirt.io",),
    done_if="it has all that the release's has, or the release's chart has none",
    undo="None is needed: the older CDI works with the newer definition.",
    sources=(
        manifests("v1.8.0", 1473),
        Source(
            repository="harvester/harvester",
            tag="v1.8.0",
            path="deploy/charts/harvester/dependency_charts/cdi/crds/cdi.yaml",
            line=1,
        ),
    ),
)

KUBEOVN = Row(
    id="kubeovn-operator-crd",
    place=Place.WITH_CHARTS,
    step="The ManagedChart kubeovn-operator-crd, where it exists, gets the version that the index of the new chart "
    "repository names. The repository has no older one, without which Fleet reports the chart as broken.",
    changes=("ManagedChart fleet-local/kubeovn-operator-crd: spec.version, spec.timeoutSeconds, spec.paused",),
    done_if="Fleet has deployed that version, or the chart does not exist",
    undo="None is needed.",
    sources=(library("v1.8.0", 735),),
)

ADDONS = Row(
    id="addons",
    place=Place.AFTER_CHARTS,
    step="Each of Harvester's add-ons, also a disabled one, gets the version that the index of the new chart "
    "repository names, and image.tag in its values becomes that of the release; all other bytes of the values stay. A "
    "tag of NVIDIA's toolkit that no earlier release brought stays. An absent add-on is created, disabled, if it is "
    f"{', '.join(one.name for one in KNOWN_ADDONS if one.values is not None)}.",
    changes=tuple(
        f"Addon {one.namespace}/{one.name}: spec.version{', spec.valuesContent' if one.image else ''}"
        for one in KNOWN_ADDONS
    ),
    done_if="each has the version and the tag, and an enabled one is deployed with them",
    undo="None is needed.",
    sources=(library("v1.8.0", 322),),
)

UPDATE_METHODS = Row(
    id="kubevirt-update-methods",
    place=Place.AROUND_NODES,
    step="Before Rancher is upgraded, KubeVirt's list of workload update methods is emptied by a value of Harvester's "
    "chart, and deployed; it stays empty until the last node is upgraded. KubeVirt would migrate every VM to a new "
    "launcher while nodes are drained.",
    changes=(
        "ManagedChart fleet-local/harvester: spec.values.kubevirt.spec.workloadUpdateStrategy.workloadUpdateMethods",
        "ManagedChart fleet-local/harvester: spec.diff.comparePatches, after Harvester's toolkit",
        "KubeVirt harvester-system/kubevirt: the same list, after Harvester's toolkit",
    ),
    done_if="the list is empty in the chart's values, and Fleet has deployed it",
    undo="The manager gives the recorded list back after the last node, after a failure, and when the plan is deleted; "
    "another list that a user has set meanwhile stays.",
    sources=(
        manifests("v1.8.0", 992),
        manifests("v1.8.0", 1022),
        Source(
            repository="harvester/harvester",
            tag="v1.8.0",
            path="pkg/controller/master/upgrade/upgrade_controller.go",
            line=1006,
        ),
    ),
    own=Executor.MANAGER,
    harvester=Executor.MANAGER,
)

ROWS = (MULTUS, WITNESS_REPLICAS, FLEET, CDI, KUBEOVN, ADDONS, *nodes.ROWS, *hosts.ROWS, UPDATE_METHODS)
