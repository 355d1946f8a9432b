from __future__ import annotations

import pytest

from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import repository_deployment, repository_service
from upgrade_manager.resources.toolkit import ToolkitImage, tolerations

OWNER = Owner(name="up", uid="u-1")
LABELS = {"management.harvesterhci.io/upgrade-plan": "up", "management.harvesterhci.io/upgrade-component": "repo"}
DEPLOYMENT = repository_deployment(
    OWNER, image=ToolkitImage(repository="example/toolkit", tag="v1.7.0"), claim="the-iso", replicas=2
)
POD = DEPLOYMENT["spec"]["template"]["spec"]
(SERVER,) = POD["containers"]
SERVICE = repository_service(OWNER)


@pytest.mark.rule(
    "workloads: Deployment and Service are named PLAN-repo",
    "workloads: the Deployment selects its Pods by plan and component repo",
    "workloads: the Deployment's Pods have the tolerations",
    "workloads: no variable of another Service is set in Pods of Jobs and of the repository",
    "workloads: repository Pods prefer different hosts",
)
def test_deployment() -> None:
    assert DEPLOYMENT["metadata"]["name"] == "up-repo"
    assert DEPLOYMENT["spec"]["selector"] == {"matchLabels": LABELS}
    assert DEPLOYMENT["spec"]["template"]["metadata"]["labels"] == {
        **LABELS,
        "management.harvesterhci.io/upgrade-plan-uid": "u-1",
    }
    assert DEPLOYMENT["spec"]["replicas"] == 2
    assert POD["tolerations"] == tolerations()
    assert POD["enableServiceLinks"] is False
    (term,) = POD["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert term["podAffinityTerm"]["labelSelector"] == {"matchLabels": LABELS}


@pytest.mark.rule(
    "pipeline: the Deployment mounts the ISO and serves it over HTTP",
    "workloads: one privileged container loop-mounts /iso/disk.img read-only for nginx",
    "workloads: the container runs nginx in the foreground on port 80",
    "workloads: the volume is the PVC named as the image",
    "workloads: the Pod is ready when harvester-release.yaml is served, and live while the file exists",
)
def test_container_serves_the_iso() -> None:
    assert SERVER["securityContext"] == {"privileged": True}
    assert SERVER["image"] == "example/toolkit:v1.7.0"
    (script,) = SERVER["args"]
    assert "mount -o loop,ro /iso/disk.img /srv/www/htdocs/harvester-iso" in script
    assert script.endswith("exec nginx -g 'daemon off;'")
    assert [port["containerPort"] for port in SERVER["ports"]] == [80]
    (volume,) = POD["volumes"]
    (mount,) = SERVER["volumeMounts"]
    assert volume["persistentVolumeClaim"]["claimName"] == "the-iso"
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/iso")
    assert SERVER["readinessProbe"]["httpGet"] == {"path": "/harvester-iso/harvester-release.yaml", "port": 80}
    command = SERVER["livenessProbe"]["exec"]["command"]
    assert command == ["test", "-f", "/srv/www/htdocs/harvester-iso/harvester-release.yaml"]


@pytest.mark.rule(
    "pipeline: RepoCreate creates a Service",
    "workloads: Deployment and Service are named PLAN-repo",
    "workloads: the Service is a ClusterIP on port 80 for those Pods",
)
def test_service() -> None:
    assert SERVICE["metadata"]["name"] == "up-repo"
    assert SERVICE["spec"]["type"] == "ClusterIP"
    assert SERVICE["spec"]["selector"] == LABELS
    (port,) = SERVICE["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (80, 80)
