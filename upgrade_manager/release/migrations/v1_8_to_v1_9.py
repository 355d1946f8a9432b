"""The rows of an upgrade from v1.8 to v1.9, and their data; pairs.py has the pair, which is provisional.

toolkit/charts and the commands cluster_upgrade, pre_drain and single_node_upgrade carry them out.
"""

from __future__ import annotations

from upgrade_manager.release.migrations.row import Discussion, Place, Row, manifests

#: The release candidate in which these rows were read.
_TAG = "v1.9.0-rc6"

#: Rancher's Setting of the Services by whose addresses other programs reach Rancher.
INTERNAL_SERVICES_SETTING = "tls-internal-cn-allowed-services"
#: The Services of v1.8's ingress, and of v1.9's.
INTERNAL_SERVICES = ("kube-system/ingress-expose", "kube-system/rke2-traefik")

INTERNAL_CERTIFICATE = Row(
    id="internal-certificate",
    place=Place.BEFORE_RANCHER,
    step="Rancher's Setting tls-internal-cn-allowed-services names the Services of both ingress controllers. Rancher "
    "2.15 would otherwise drop the cluster's address from its internal certificate and add it again, without end.",
    changes=(f"Rancher's Setting {INTERNAL_SERVICES_SETTING}: value",),
    done_if="the value names both Services",
    undo="None is needed: Rancher 2.14 does not read the Setting.",
    sources=(
        manifests(_TAG, 1633),
        Discussion(repository="harvester/harvester", number=11341),
        Discussion(repository="rancher/rancher", number=56237),
    ),
)

#: An annotation of Rancher's own cluster.
ADMINISTRATED = "provisioning.cattle.io/administrated"

ADMINISTRATED_CLUSTER = Row(
    id="administrated-cluster",
    place=Place.BEFORE_RANCHER,
    step="Rancher's own cluster is annotated as administrated. The Plan system-agent-upgrader of Rancher 2.15 would "
    "otherwise wait without end.",
    changes=(f"Cluster local of management.cattle.io: annotation {ADMINISTRATED}",),
    done_if="the annotation is true",
    undo="Remove the annotation by hand.",
    sources=(Discussion(repository="harvester/harvester", number=11336),),
)

#: A key of Rancher's features that 2.15 is the first to know.
ADDED_FEATURE = ("crt-token-ttl-rotation", "false")

TOKEN_ROTATION = Row(
    id="token-rotation",
    place=Place.WITH_RANCHER,
    step="The key crt-token-ttl-rotation=false is added to the features of Rancher's chart, since users choose the "
    "token by which nodes join. Rancher 2.14 would refuse the whole text, so it is written with the new version alone.",
    changes=("Helm release cattle-system/rancher: value features",),
    done_if="the value has the key",
    undo="A rollback of the Helm release brings the whole text back; never set the key for Rancher 2.14.",
    sources=(Discussion(repository="rancher/rancher", number=56377),),
)

#: The name of the ingress controller's chart in RKE2.
TRAEFIK = "rke2-traefik"
TRAEFIK_VALUES = """\
logs:
  access:
    enabled: "true"
additionalArguments:
- "--entryPoints.websecure.transport.respondingTimeouts.readTimeout=30m"
- "--entryPoints.websecure.transport.respondingTimeouts.writeTimeout=30m"
"""

TRAEFIK_CHART = Row(
    id="traefik-values",
    place=Place.AFTER_RANCHER,
    step="The values of RKE2's chart rke2-traefik are created: uploads of images may take 30 minutes, and requests are "
    "logged.",
    changes=(f"HelmChartConfig kube-system/{TRAEFIK}",),
    done_if="the HelmChartConfig exists",
    undo="Delete the HelmChartConfig by hand.",
    sources=(Discussion(repository="harvester/harvester", number=11292),),
)

#: A file of RKE2's configuration, which RKE2 merges with the others.
INGRESS_FILE = "99-traefik.yaml"

INGRESS_CONTROLLER = Row(
    id="ingress-controller",
    place=Place.BEFORE_RKE2,
    step="RKE2's ingress controller becomes Traefik, unless the host's configuration names one. RKE2 would otherwise "
    "keep Nginx, whose chart is installed.",
    changes=(f"/etc/rancher/rke2/config.yaml.d/{INGRESS_FILE}",),
    done_if="RKE2's configuration on the host names an ingress controller",
    undo="Remove the file before RKE2 restarts. Afterwards the ingress moves back with RKE2 alone.",
    sources=(Discussion(repository="harvester/harvester-installer", number=1232),),
)

ROWS = (INTERNAL_CERTIFICATE, ADMINISTRATED_CLUSTER, TOKEN_ROTATION, TRAEFIK_CHART, INGRESS_CONTROLLER)
