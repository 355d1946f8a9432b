"""The rows of an upgrade from v1.7 to v1.8, and their data; pairs.py has the pair.

toolkit/charts and toolkit/commands/cluster_upgrade.py carry out those of the cluster, toolkit/os those of a node.
"""

from __future__ import annotations

from upgrade_manager.release.migrations.row import Place, Row, Source, manifests, node_program

#: The release from which on Harvester has the new default of overcommit-config.
NEWER = (1, 8)
#: Keys of Rancher's features that v1.7's installer sets. Rancher 2.14 refuses the whole text for embedded-cluster-api,
#: and with turtles=false it runs no controllers of Cluster API.
DROPPED_FEATURES = frozenset({"turtles", "embedded-cluster-api"})

FEATURES = Row(
    id="rancher-features",
    place=Place.WITH_RANCHER,
    step="The keys turtles and embedded-cluster-api are removed from the features of Rancher's chart; other keys stay. "
    "Rancher 2.14 would refuse the whole text and manage other clusters, so its Feature multi-cluster-management is "
    "checked afterwards.",
    changes=("Helm release cattle-system/rancher: value features",),
    done_if="the value has neither key, and the Feature multi-cluster-management is false",
    undo="A rollback of the Helm release brings the whole text back; never set the keys alone.",
    sources=(
        manifests("v1.8.0", 781),
        Source(
            repository="harvester/harvester-installer",
            tag="v1.7.1",
            path="package/harvester-os/files/usr/share/rancher/rancherd/config.yaml.d/50-defaults.yaml",
            line=6,
        ),
    ),
)

#: The namespace of the Cluster API that Rancher 2.13 embeds.
CAPI_NAMESPACE = "cattle-provisioning-capi-system"
#: The names of its webhook configurations, of either kind.
CAPI_MUTATING, CAPI_VALIDATING = "mutating-webhook-configuration", "validating-webhook-configuration"

CAPI_WEBHOOKS = Row(
    id="capi-webhooks",
    place=Place.WITH_RANCHER,
    step="The webhook configurations of the Cluster API that Rancher 2.13 embeds are deleted, if their Service is in "
    f"{CAPI_NAMESPACE}. Rancher 2.14 leaves them behind, and the API server would call a Service that does not exist.",
    changes=(
        f"MutatingWebhookConfiguration {CAPI_MUTATING}",
        f"ValidatingWebhookConfiguration {CAPI_VALIDATING}",
    ),
    done_if="no configuration of these names calls a Service in that namespace",
    undo="None is needed: Rancher 2.13 creates them again.",
    sources=(
        manifests("v1.8.0", 712),
        Source(
            repository="rancher/rancher",
            tag="v2.14.0",
            path="pkg/controllers/dashboard/systemcharts/controller.go",
            line=606,
        ),
    ),
)

AGGREGATION_SECRET = Row(
    id="aggregation-secret",
    place=Place.AFTER_RANCHER,
    step="The empty Secret stv-aggregation is created where it does not exist. Rancher's Plan system-agent-upgrader "
    "names it and would wait for it without end.",
    changes=("Secret cattle-system/stv-aggregation",),
    done_if="the Secret exists",
    undo="None is needed.",
    sources=(manifests("v1.8.0", 823),),
)

OVERCOMMIT = Row(
    id="overcommit-config",
    place=Place.BEFORE_RANCHER,
    step="The default of Harvester's Setting overcommit-config becomes its value, unless it has a value. Harvester "
    "v1.8 brings another default, by which VMs that are created or edited later would request more CPU.",
    changes=("Setting overcommit-config: value, annotation management.harvesterhci.io/pinned-value",),
    done_if="the Setting has a value or no default, or Harvester is v1.8 or later",
    undo="A failure before Harvester's chart is upgraded clears the value, if it is still that one. Afterwards, clear "
    "it by hand to follow the release's default.",
    sources=(manifests("v1.8.0", 85),),
)

NIC_NAMES = Row(
    id="nic-names",
    place=Place.BEFORE_OS,
    step="GRUB must show an ifname for each physical NIC before the operating system is installed: the drivers of "
    "Harvester v1.8 give other names to some NICs.",
    changes=("/oem/grubenv: third_party_kernel_args, which is only read",),
    done_if="grub2-editenv lists an ifname of each physical NIC's MAC",
    undo="None is needed: nothing is changed.",
    sources=(node_program("v1.8.0", 634),),
)

ROWS = (OVERCOMMIT, CAPI_WEBHOOKS, FEATURES, AGGREGATION_SECRET, NIC_NAMES)
