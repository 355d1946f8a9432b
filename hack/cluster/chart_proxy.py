"""Harvester's chart repository behind the API server's proxy of Services: the charts of the release that it runs."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import yaml

from hack.actors.answers import refused
from hack.actors.repository import release_of
from hack.crds.foreign import service_crds
from hack.host.iso import tar_of
from upgrade_manager.api.keys import CATTLE_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.handlers import Handlers
    from hack.scenario import Scenario
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request

_REPOSITORY = "harvester-cluster-repo"
#: The Service as SCHEME:NAME:PORT.
PATH = f"/api/v1/namespaces/{CATTLE_SYSTEM}/services/http:{_REPOSITORY}:80/proxy/charts/{{file}}"
#: Charts with Harvester's version, and others by the releases before v1.8 and from v1.8 on.
_HARVESTER = (
    "harvester",
    "harvester-crd",
    "harvester-vm-import-controller",
    "harvester-pcidevices-controller",
    "harvester-seeder",
    "nvidia-driver-runtime",
)
_OLD = {"descheduler": "0.33.0", "kubeovn-operator": "1.14.10", "kubeovn-operator-crd": "1.14.10"}
_NEW = {"descheduler": "0.33.0", "kubeovn-operator": "1.15.4", "kubeovn-operator-crd": "1.15.4"}
#: The definition of CDI in Harvester's chart, which Helm never upgrades (harvester/harvester,
#: deploy/charts/harvester/dependency_charts/cdi/crds/cdi.yaml), as far as it is simulated.
_CDI_FILE = "harvester/charts/cdi/crds/cdi.yaml"


def proxy_charts(handlers: Handlers, scenario: Scenario, client: Client) -> None:
    """Serve the index and Harvester's chart."""

    async def get(_: Request, values: Mapping[str, str]) -> Response:
        deployment = await client.get(DEPLOYMENTS, _REPOSITORY, namespace=CATTLE_SYSTEM)
        image = objects.spec(deployment)["template"]["spec"]["containers"][0]["image"]
        versions = versions_of(scenario, image.rpartition(":")[2])
        if values["file"] == "index.yaml":
            return Response(status=200, headers={"content-type": "text/yaml"}, body=_index(versions))
        if values["file"] == f"harvester-{versions['harvester']}.tgz":
            return Response(status=200, headers={"content-type": "application/gzip"}, body=harvester_chart())
        return refused(404, "not found")

    handlers.register(PATH, get)


def versions_of(scenario: Scenario, harvester: str) -> dict[str, str]:
    """Return the versions of the charts in a release of Harvester."""
    release = release_of(scenario)
    is_new = harvester == scenario.release.harvester
    rancher = {"rancher-monitoring": release["monitoringChart"], "rancher-logging": release["loggingChart"]}
    return {
        **dict.fromkeys(_HARVESTER, release["harvesterChart"] if is_new else harvester.removeprefix("v")),
        **(rancher if is_new else {}),
        **(_NEW if is_new else _OLD),
    }


def _index(versions: dict[str, str]) -> bytes:
    entries = {
        name: [{"name": name, "version": version, "urls": [f"{name}-{version}.tgz"]}]
        for name, version in versions.items()
    }
    return yaml.safe_dump({"apiVersion": "v1", "entries": entries}).encode()


def harvester_chart() -> bytes:
    """Return the archive of Harvester's chart, of which only CDI's definition is simulated."""
    files = {"harvester/Chart.yaml": b"name: harvester\n", _CDI_FILE: yaml.safe_dump(new_cdi()).encode()}
    return tar_of(files, mode="w:gz")


def new_cdi() -> Object:
    """Return CDI's definition in the new release: with a field more, and with values that the API server leaves out."""
    found = deepcopy(next(one for one in service_crds() if objects.name(one) == "cdis.cdi.kubevirt.io"))
    found["metadata"] = {
        "name": objects.name(found),
        "annotations": {"controller-gen.kubebuilder.io/version": "v0.16.5"},
    }
    fields = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["priorityClass"] = {"type": "string", "description": ""}
    return found
