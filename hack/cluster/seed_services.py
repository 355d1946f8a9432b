"""The initial objects of Rancher's and Harvester's services, which only `cluster-upgrade` reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.helm_storage import DEPLOYED, revision
from hack.cluster.templates import build
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM

if TYPE_CHECKING:
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

FLEET_SYSTEM, FLEET_AGENT_SYSTEM = "cattle-fleet-system", "cattle-fleet-local-system"
_IMAGES = {
    (CATTLE_SYSTEM, "rancher-webhook"): "rancher/rancher-webhook",
    (FLEET_SYSTEM, "fleet-controller"): "rancher/fleet",
    (FLEET_AGENT_SYSTEM, "fleet-agent"): "rancher/fleet-agent",
}
#: CDI's controller and the two replicas of KubeVirt's.
_OPERATORS = (
    ("cdi-deployment", HARVESTER_SYSTEM, "registry.suse.com/suse/sles/15.7/cdi-controller", 1),
    ("virt-controller", HARVESTER_SYSTEM, "registry.suse.com/suse/sles/15.7/virt-controller", 2),
)
_REPOSITORIES = {
    "harvester-charts": {"url": "http://harvester-cluster-repo.cattle-system/charts"},
    "rancher-charts": {"gitRepo": "https://git.rancher.io/charts"},
}
_FEATURES = (
    "multi-cluster-management=false",
    "multi-cluster-management-agent=false",
    "managed-system-upgrade-controller=false",
)
_FEATURES_BEFORE_2_14 = ("turtles=false", "embedded-cluster-api=true")
#: Versions of the charts that Rancher installed, and of the software in them.
_DEPENDENCIES = {
    "fleet-crd": (FLEET_SYSTEM, "108.0.0+up0.14.0", "0.14.0"),
    "fleet": (FLEET_SYSTEM, "108.0.0+up0.14.0", "0.14.0"),
    "rancher-webhook": (CATTLE_SYSTEM, "108.0.0+up0.9.0", "0.9.0"),
}


def features_of(rancher: str) -> str:
    """Return the features that the installer of the release with this Rancher sets.

    harvester-installer v1.7.1, package/harvester-os/files/usr/share/rancher/rancherd/config.yaml.d/50-defaults.yaml:6;
    without the keys that only Rancher before v2.14 knows, as an upgrade to v1.8.0 leaves them.
    """
    minor = tuple(int(part) for part in rancher.removeprefix("v").split(".")[:2])
    return ",".join((*_FEATURES, *(_FEATURES_BEFORE_2_14 if minor < (2, 14) else ())))


def controllers(scenario: Scenario) -> list[Object]:
    """Build the Deployments of the controllers that actors play; their Pods run on cordoned nodes, too."""
    rows = [
        ("rancher", CATTLE_SYSTEM, f"rancher/rancher:{scenario.software.rancher}", 1),
        ("system-upgrade-controller", CATTLE_SYSTEM, "rancher/system-upgrade-controller:v0.16.0", 1),
    ]
    rows += _OPERATORS if scenario.operators else []
    everywhere = [{"operator": "Exists"}]
    features = features_of(scenario.software.rancher)
    environments = {"rancher": [{"name": "CATTLE_FEATURES", "value": features}]}
    return [
        _deployment(name, namespace, image, replicas=replicas, tolerations=everywhere, env=environments.get(name))
        for name, namespace, image, replicas in rows
    ]


def deployments(scenario: Scenario) -> list[Object]:
    """Build the Deployments of Rancher's webhook, Fleet and the chart repository."""
    images = {key: f"{image}:{scenario.software.rancher}" for key, image in _IMAGES.items()}
    repository = f"rancher/harvester-cluster-repo:{scenario.software.harvester}"
    images[(CATTLE_SYSTEM, "harvester-cluster-repo")] = repository
    return [_deployment(name, namespace, image) for (namespace, name), image in images.items()]


def daemon_set(scenario: Scenario) -> Object:
    """Build Longhorn's manager."""
    return build("longhorn_manager", count=len(scenario.nodes.for_machines))


def instance_managers(scenario: Scenario) -> list[Object]:
    """Build Longhorn's Pods with engines and replicas, one for each node."""
    return [instance_manager(node, "v1.10.0") for node in scenario.nodes.for_machines]


def instance_manager(node: str, version: str) -> Object:
    """Build a node's Pod with engines and replicas."""
    image = f"longhornio/longhorn-instance-manager:{version}"
    name = f"instance-manager-{version.replace('.', '-')}-{node}"
    return build("instance_manager", name=name, node=node, image=image)


def setting(scenario: Scenario) -> Object:
    """Build Rancher's Setting with its version."""
    return build("rancher_version", version=scenario.software.rancher)


def feature() -> Object:
    """Build Rancher's Feature of a cluster that manages no others."""
    return build("rancher_feature", name="multi-cluster-management", default=False)


def fleet_config() -> Object:
    """Build the configuration of Fleet's controller."""
    return build("fleet_config")


def fleet_cluster(*, at: str) -> Object:
    """Build Fleet's cluster, whose agent was deployed at this time."""
    return build("fleet_cluster", at=at)


def capi_webhooks(kind: str) -> Object:
    """Build the webhook configuration of this kind that belongs to Rancher's embedded Cluster API."""
    verb = kind.removesuffix("WebhookConfiguration").lower()
    return build("capi_webhooks", kind=kind, name=f"{verb}-webhook-configuration")


def repositories(*, at: str) -> list[Object]:
    """Build Rancher's chart repositories, downloaded at this time."""
    return [build("chart_repository", name=name, spec=spec, at=at) for name, spec in _REPOSITORIES.items()]


def releases(scenario: Scenario) -> list[Object]:
    """Build Helm's Secrets of Rancher, its dependencies, and the enabled add-ons."""
    version = scenario.software.rancher
    values = build("rancher_values", version=version, features=features_of(version))
    found = [_release("rancher", CATTLE_SYSTEM, version.removeprefix("v"), version, values)]
    found += [_release(name, *where, {}) for name, where in _DEPENDENCIES.items()]
    enabled = [addon for addon in scenario.addons if addon.enabled]
    return found + [
        _release(one.name, one.namespace, one.version, one.version, {}, chart_name=one.chart) for one in enabled
    ]


def _release(name: str, namespace: str, chart: str, app: str, values: Object, *, chart_name: str = "") -> Object:
    named = (chart_name or name, chart)
    return revision(name, namespace=namespace, number=1, status=DEPLOYED, chart=named, app=app, values=values)


def _deployment(
    name: str,
    namespace: str,
    image: str,
    *,
    replicas: int = 1,
    tolerations: list[Object] | None = None,
    env: list[Object] | None = None,
) -> Object:
    container = "httpd" if name == "harvester-cluster-repo" else name
    return build(
        "deployment",
        name=name,
        namespace=namespace,
        replicas=replicas,
        container=container,
        image=image,
        env=env,
        tolerations=tolerations,
    )
