"""The Helm chart beside its sources, without Helm: tests/deploy/test_helm.py renders it."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from hack.chart.catalogue import COPIES, TEMPLATES
from tests.support.programs.kustomize import DEFAULT, DEPLOY, objects
from upgrade_manager import __version__
from upgrade_manager.runtime.cert_watcher import context_from_pem
from upgrade_manager.runtime.logging import LEVELS
from upgrade_manager.runtime.self_signed import make_pem

CHART = DEPLOY / "chart"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
WRITTEN = {"_helpers.tpl", "NOTES.txt", "conflicts.yaml", "grafana/dashboard.yaml", "tests/services.yaml"}
HOOK = (CHART / "templates/tests/services.yaml").read_text()


def test_templates_are_up_to_date() -> None:
    """After a change of deploy: `make manifests`."""
    files = {str(path.relative_to(CHART / "templates")) for path in (CHART / "templates").rglob("*.*")}
    generated = {template.source: template.text(DEPLOY) for template in TEMPLATES}
    assert files == WRITTEN | generated.keys()
    assert {name: (CHART / "templates" / name).read_text() for name in generated} == generated
    for name, source in COPIES.items():
        assert (CHART / name).read_text() == (DEPLOY / source).read_text()


def test_every_manifest_has_a_template() -> None:
    unused = {"samples", "chart", "addon"}
    manifests = {
        str(path.relative_to(DEPLOY))
        for path in DEPLOY.rglob("*.yaml")
        if path.name != "kustomization.yaml" and path.relative_to(DEPLOY).parts[0] not in unused
    }
    assert {template.source for template in TEMPLATES} == manifests


def test_chart_has_the_project_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize(
    ("name", "values"),
    [("harvester-upgrade-manager", VALUES), ("harvester-upgrade-manager-webhook", VALUES["webhook"])],
)
def test_default_values_are_those_of_the_manifests(name: str, values: dict[str, Any]) -> None:
    deployments = {one["metadata"]["name"]: one["spec"] for one in objects(DEFAULT) if one["kind"] == "Deployment"}
    pod = deployments[name]["template"]["spec"]
    assert values["replicas"] == deployments[name]["replicas"]
    assert values["resources"] == pod["containers"][0]["resources"]
    assert VALUES["priorityClassName"] == pod["priorityClassName"]
    # Required of users, who set it in the kustomization, too.
    assert VALUES["image"]["repository"] == ""
    assert VALUES["hostUsers"] is pod.get("hostUsers") is None


def keys(tree: Any, path: str = "") -> Iterator[str]:
    for name, value in tree.items():
        yield f"{path}{name}"
        # Kubernetes names the resources.
        if isinstance(value, dict) and not path.endswith("resources."):
            yield from keys(value, f"{path}{name}.")


def known(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, value in schema.get("properties", {}).items():
        yield f"{path}{name}"
        yield from known(value, f"{path}{name}.")


def test_schema_knows_every_value_and_refuses_others() -> None:
    assert set(keys(VALUES)) <= set(known(SCHEMA))
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["properties"]["log"]["properties"]["level"]["enum"] == [*LEVELS]


def test_addon_installs_this_chart_with_known_values() -> None:
    addon = yaml.safe_load((DEPLOY / "addon/harvester-upgrade-manager.yaml").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    # The chart refuses another namespace, which is that of the Addon.
    assert addon["metadata"]["namespace"] == "harvester-system"
    spec = addon["spec"]
    assert (spec["chart"], spec["version"], spec["enabled"]) == (chart["name"], chart["version"], False)
    assert set(keys(yaml.safe_load(spec["valuesContent"]))) <= set(known(SCHEMA))


def hook_script() -> str:
    lines = HOOK.split("        - |\n")[1].split('        - "12"\n')[0]
    return "\n".join(line.removeprefix(" " * 10) for line in lines.splitlines())


async def run_hook(*endpoints: str) -> tuple[int | None, str]:
    command = [sys.executable, "-c", hook_script(), "1", *endpoints]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.real_loop
async def test_hook_succeeds_when_all_services_answer() -> None:
    def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    tls = context_from_pem(make_pem(now=datetime.now(UTC)))
    async with await asyncio.start_server(close, "127.0.0.1", 0, ssl=tls) as server:
        served = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert await run_hook(served) == (0, f"{served}: TLS handshake succeeded\n")
        with socket.create_server(("127.0.0.1", 0)) as unused:
            closed = f"127.0.0.1:{unused.getsockname()[1]}"
        code, output = await run_hook(served, closed)
        assert code == 1
        assert f"{closed}: [Errno" in output
