"""The upgrade repository: a Deployment that serves the ISO's content over HTTP, and its Service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.api.names import component_name, repo_service_name
from upgrade_manager.kube.resources import DEPLOYMENTS, SERVICES, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.resources.toolkit import tolerations

if TYPE_CHECKING:
    from upgrade_manager.resources.owner import Owner
    from upgrade_manager.resources.toolkit import ToolkitImage

#: The repository and its image.
REPOSITORY_KINDS = (DEPLOYMENTS, SERVICES, VIRTUAL_MACHINE_IMAGES)
PORT = 80
#: Mount point of the ISO in the container.
ROOT = "/srv/www/htdocs/harvester-iso"
#: The ISO in the container.
IMAGE_FILE = "/iso/disk.img"
RELEASE_FILE = "harvester-release.yaml"
#: URL path of the release file, which the readiness probe reads.
RELEASE_PATH = f"/harvester-iso/{RELEASE_FILE}"
#: Unmounts the ISO if a crashed container left it mounted; `exec` lets nginx receive SIGTERM.
SERVE = (
    f"set -e; mkdir -p {ROOT}; mountpoint -q {ROOT} && umount {ROOT}; "
    f"mount -o loop,ro {IMAGE_FILE} {ROOT}; exec nginx -g 'daemon off;'"
)


def repository_deployment(owner: Owner, *, image: ToolkitImage, claim: str, replicas: int) -> dict[str, Any]:
    """Build the Deployment; `claim` is the PVC that contains the ISO."""
    deployment = owner.manifest(
        DEPLOYMENTS, component_name(owner.name, Component.REPO), Component.REPO, namespace=HARVESTER_SYSTEM
    )
    selected = owner.match_labels(Component.REPO)
    deployment["spec"] = {
        "replicas": replicas,
        "selector": {"matchLabels": selected},
        "template": {
            "metadata": {"labels": owner.labels(Component.REPO)},
            "spec": {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "affinity": _spread(selected),
                "tolerations": tolerations(),
                "containers": [_server(image)],
                "volumes": [{"name": "iso", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}],
            },
        },
    }
    return deployment


def repository_service(owner: Owner) -> dict[str, Any]:
    """Build the Service through which node Jobs and the manager reach the repository."""
    service = owner.manifest(SERVICES, repo_service_name(owner.name), Component.REPO, namespace=HARVESTER_SYSTEM)
    service["spec"] = {
        "type": "ClusterIP",
        "selector": owner.match_labels(Component.REPO),
        "ports": [{"name": "http", "protocol": "TCP", "port": PORT, "targetPort": PORT}],
    }
    return service


def pod_selector(owner: Owner) -> str:
    """Return the label selector of the Deployment's Pods, which is the Deployment's own."""
    return ",".join(f"{key}={value}" for key, value in owner.match_labels(Component.REPO).items())


def _spread(labels: dict[str, str]) -> dict[str, Any]:
    """Return an affinity that spreads replicas over nodes, so that one reboot leaves one running."""
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
        # Required for the loop mount.
        "securityContext": {"privileged": True},
        "readinessProbe": {"httpGet": {"path": RELEASE_PATH, "port": PORT}, "periodSeconds": 5},
        "livenessProbe": {
            "exec": {"command": ["test", "-f", f"{ROOT}/{RELEASE_FILE}"]},
            "initialDelaySeconds": 30,
            "periodSeconds": 30,
        },
        "volumeMounts": [{"name": "iso", "mountPath": "/iso", "readOnly": True}],
    }
