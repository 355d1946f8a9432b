"""All manifests against the schemas of the real API server, by kubeconform."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from hack.control_plane.assets import find_tool
from tests.support.programs.helm import Helm
from tests.support.programs.kustomize import COMPONENTS, DEFAULT, DEPLOY, rendered, with_components
from tests.support.server.schemas import LOCATION, write_schemas

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

#: Kinds of other projects, whose definitions the cluster does not have.
OTHERS = ("Addon", "Certificate", "Issuer", "PrometheusRule", "ServiceMonitor", "Version")
ALL = (
    "webhook.certificates=cert-manager",
    "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true",
    "dashboard.enabled=true",
)


def kubeconform(schemas: Path, manifests: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    options = ["-strict", "-summary", f"-skip={','.join(OTHERS)}", f"-schema-location={schemas}/{LOCATION}"]
    return subprocess.run(  # noqa: S603  # our own kubeconform
        [str(find_tool("kubeconform", os.environ)), *options],
        input=yaml.safe_dump_all(manifests),
        capture_output=True,
        text=True,
        check=False,
    )


async def test_manifests_have_only_fields_of_the_api_server(cluster: Cluster, tmp_path: Path) -> None:
    schemas, all_components = tmp_path / "schemas", tmp_path / "all"
    all_components.mkdir()
    write_schemas((await cluster.wire.get("/openapi/v2")).body, schemas)
    helm = Helm(tmp_path)
    manifests = [
        *rendered(DEFAULT),
        *rendered(with_components(all_components, COMPONENTS)),
        *rendered(DEPLOY / "samples"),
        *helm.rendered(),
        *helm.rendered(*ALL),
    ]
    valid = kubeconform(schemas, manifests)
    assert valid.returncode == 0, valid.stdout
    assert "Invalid: 0, Errors: 0" in valid.stdout

    deployment = next(one for one in rendered(DEFAULT) if one["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    assert "imagePullPolice" in kubeconform(schemas, [deployment]).stdout
