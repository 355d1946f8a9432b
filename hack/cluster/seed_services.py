"""The initial objects of Rancher's and Harvester's services, which only `cluster-upgrade` reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.helm_storage import DEPLOYED, revision
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM, LONGHORN_SYSTEM, SETTING_SERVER_VERSION

if TYPE_CHECKING:
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

FLEET_SYSTEM = "cattle-fleet-system"
_IMAGES = {
    (CATTLE_SYSTEM, "rancher-webhook"): "rancher/rancher-webhook",
    (FLEET_SYSTEM, "fleet-controller"): "rancher/fleet",
}
#: Versions of the charts that Rancher installed, and of the software in them.
_DEPENDENCIES = {
    "fleet-crd": (FLEET_SYSTEM, "108.0.0+up0.14.0", "0.14.0"),
    "fleet": (FLEET_SYSTEM, "108.0.0+up0.14.0", "0.14.0"),
    "rancher-webhook": (CATTLE_SYSTEM, "108.0.0+up0.9.0", "0.9.0"),
}
#: As Harvester's installer sets them.
RANCHER_VALUES: Object = {
    "antiAffinity": "required",
    "bootstrapPassword": "admin",
    "extraEnv": [{"name": "CATTLE_SHELL_IMAGE", "value": "rancher/shell:v0.5.0"}, {"name": "HTTP_PROXY", "value": ""}],
    "features": "multi-cluster-management=false",
    "hostPort": 0,
    "ingress": {"enabled": False},
    "replicas": -3,
    "tls": "external",
    "useBundledSystemChart": True,
}


def controllers(scenario: Scenario) -> list[Object]:
    """Build the Deployments of the controllers that actors play; their Pods run on cordoned nodes, too."""
    images = {
        "rancher": f"rancher/rancher:{scenario.software.rancher}",
        "system-upgrade-controller": "rancher/system-upgrade-controller:v0.16.0",
    }
    found = [_deployment(name, CATTLE_SYSTEM, image) for name, image in images.items()]
    found += _operators() if scenario.operators else []
    for deployment in found:
        deployment["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    return found


def _operators() -> list[Object]:
    """Build the Deployments of CDI's controller and of the two replicas of KubeVirt's."""
    importer = _deployment("cdi-deployment", HARVESTER_SYSTEM, "registry.suse.com/suse/sles/15.7/cdi-controller")
    migrator = _deployment("virt-controller", HARVESTER_SYSTEM, "registry.suse.com/suse/sles/15.7/virt-controller")
    migrator["spec"]["replicas"] = 2
    return [importer, migrator]


def deployments(scenario: Scenario) -> list[Object]:
    """Build the Deployments of Rancher's webhook, Fleet and the chart repository."""
    images = {key: f"{image}:{scenario.software.rancher}" for key, image in _IMAGES.items()}
    repository = f"rancher/harvester-cluster-repo:{scenario.software.harvester}"
    images[(CATTLE_SYSTEM, "harvester-cluster-repo")] = repository
    return [_deployment(name, namespace, image) for (namespace, name), image in images.items()]


def daemon_set(scenario: Scenario) -> Object:
    """Build Longhorn's manager."""
    count = scenario.nodes.count
    numbers = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled")
    status = dict.fromkeys((*numbers, "numberReady", "numberAvailable"), count)
    labels = {"app": "longhorn-manager"}
    pod = {"containers": [{"name": "longhorn-manager", "image": "longhornio/longhorn-manager:v1.10.0"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "longhorn-manager", "namespace": LONGHORN_SYSTEM},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        "status": {**status, "numberMisscheduled": 0, "observedGeneration": 1},
    }


def setting(scenario: Scenario) -> Object:
    """Build Rancher's Setting with its version."""
    return {
        "apiVersion": "management.cattle.io/v3",
        "kind": "Setting",
        "metadata": {"name": SETTING_SERVER_VERSION},
        "value": scenario.software.rancher,
    }


def repositories(*, at: str) -> list[Object]:
    """Build Rancher's chart repositories, downloaded at this time."""
    return [
        {
            "apiVersion": "catalog.cattle.io/v1",
            "kind": "ClusterRepo",
            "metadata": {"name": name},
            "spec": {"url": url} if url else {"gitRepo": "https://git.rancher.io/charts"},
            "status": {"downloadTime": at, "conditions": [{"type": "Downloaded", "status": "True"}]},
        }
        for name, url in (
            ("harvester-charts", "http://harvester-cluster-repo.cattle-system/charts"),
            ("rancher-charts", ""),
        )
    ]


def releases(scenario: Scenario) -> list[Object]:
    """Build Helm's Secrets of Rancher, its dependencies, and the enabled add-ons."""
    version = scenario.software.rancher
    values = {**RANCHER_VALUES, "rancherImageTag": version}
    found = [_release("rancher", CATTLE_SYSTEM, version.removeprefix("v"), version, values)]
    found += [_release(name, *where, {}) for name, where in _DEPENDENCIES.items()]
    enabled = [addon for addon in scenario.addons if addon.enabled]
    return found + [_release(addon.name, addon.namespace, "1.0.0", "1.0.0", {}) for addon in enabled]


def _release(name: str, namespace: str, chart: str, app: str, values: Object) -> Object:
    return revision(name, namespace=namespace, number=1, status=DEPLOYED, chart=(name, chart), app=app, values=values)


def _deployment(name: str, namespace: str, image: str) -> Object:
    labels = {"app": name}
    container = {"name": "httpd" if name == "harvester-cluster-repo" else name, "image": image}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
