"""The upgrade repository: Pods that serve the ISO's content over HTTP, and the Service that finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.api.names import component_name, repo_service_name
from upgrade_manager.kube.resources import DEPLOYMENTS, SERVICES
from upgrade_manager.resources.tolerations import tolerations

if TYPE_CHECKING:
    from upgrade_manager.resources.owner import Owner
    from upgrade_manager.resources.toolkit import ToolkitImage

PORT = 80
#: Where the ISO is mounted, and the path under which it is served.
ROOT = "/srv/www/htdocs/harvester-iso"
RELEASE_FILE = "harvester-release.yaml"
#: The file by which kubelet, manager and node jobs judge the repository.
RELEASE_PATH = f"/harvester-iso/{RELEASE_FILE}"
#: `exec` makes nginx the process that gets the stop signal; a mount left by a crashed container is taken off first.
SERVE = (
    f"set -e; mkdir -p {ROOT}; mountpoint -q {ROOT} && umount {ROOT}; "
    f"mount -o loop,ro /iso/disk.img {ROOT}; exec nginx -g 'daemon off;'"
)


def repository_deployment(owner: Owner, *, image: ToolkitImage, claim: str, replicas: int) -> dict[str, Any]:
    """The Deployment; `claim` is the PVC with the ISO, which carries its image's name."""
    deployment = owner.manifest(
        DEPLOYMENTS, component_name(owner.name, Component.REPO), Component.REPO, namespace=HARVESTER_SYSTEM
    )
    labels = owner.labels(Component.REPO)
    deployment["spec"] = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                # It serves files and asks nobody.
                "automountServiceAccountToken": False,
                "affinity": _apart(labels),
                "tolerations": tolerations(),
                "containers": [_server(image)],
                "volumes": [{"name": "iso", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}],
            },
        },
    }
    return deployment


def repository_service(owner: Owner) -> dict[str, Any]:
    """The Service, by whose name node jobs and the manager reach the repository."""
    service = owner.manifest(SERVICES, repo_service_name(owner.name), Component.REPO, namespace=HARVESTER_SYSTEM)
    service["spec"] = {
        "type": "ClusterIP",
        "selector": owner.labels(Component.REPO),
        "ports": [{"name": "http", "protocol": "TCP", "port": PORT, "targetPort": PORT}],
    }
    return service


def _apart(labels: dict[str, str]) -> dict[str, Any]:
    """Replicas prefer different nodes, so that one reboot does not take the repository away."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _server(image: ToolkitImage) -> dict[str, Any]:
    return {
        "name": "repo",
        "image": str(image),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c"],
        "args": [SERVE],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        # A loop mount needs the host's devices.
        "securityContext": {"privileged": True},
        "readinessProbe": {"httpGet": {"path": RELEASE_PATH, "port": PORT}, "periodSeconds": 5},
        "livenessProbe": {
            "exec": {"command": ["test", "-f", f"{ROOT}/{RELEASE_FILE}"]},
            "initialDelaySeconds": 30,
            "periodSeconds": 30,
        },
        "volumeMounts": [{"name": "iso", "mountPath": "/iso", "readOnly": True}],
    }
