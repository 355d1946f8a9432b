"""The program helm: keeps its releases in the simulated cluster, and changes Rancher's Deployment."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hack.actors.helm_storage import DEPLOYED, PENDING, SUPERSEDED, HelmStorage, is_blocked, revision
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, SECRETS
from upgrade_manager.toolkit.host.host_programs import Output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.kube.client import Client
    from upgrade_manager.toolkit.host.host_programs import Call

_CHART = re.compile(r"(?P<name>[a-z-]+)-(?P<version>\d.*)\.tgz")
_POLL = 0.5
_FAILED = "failed"


class SimulatedHelm:
    """Implements HostPrograms for helm alone."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._storage = HelmStorage(client)
        #: The calls, as one line each, with the names of temporary files but not their folders.
        self.calls: list[str] = []
        #: The last line of the next upgrades, which fail; empty for one that succeeds.
        self.failures: list[str] = []

    async def run(self, call: Call) -> Output:
        """See HostPrograms."""
        self.calls.append(" ".join(Path(word).name if word.startswith("/") else word for word in call.argv))
        words, options = _parsed(call.argv[1:])
        try:
            return await self._run(words, options)
        except KubeError as error:
            return Output(status=1, stderr=f"Error: Kubernetes cluster unreachable: {error}")

    async def _run(self, words: Sequence[str], options: Mapping[str, str]) -> Output:
        namespace = options["namespace"]
        match list(words):
            case ["history", name]:
                revisions = await self._storage.revisions(name, namespace)
                listed = [_listed(one) for one in revisions[-int(options["max"]) :]]
                return Output(status=0, stdout=json.dumps(listed)) if listed else _error("release: not found")
            case ["get", "values", name]:
                revisions = await self._storage.revisions(name, namespace)
                if not revisions:
                    return _error("release: not found")
                return Output(status=0, stdout=yaml.safe_dump(revisions[-1]["config"] or None))
            case ["upgrade", name, chart]:
                return await self._upgrade(name, namespace, Path(chart), Path(options["values"]))
        return _error(f"unknown command {words}")

    async def _upgrade(self, name: str, namespace: str, chart: Path, file: Path) -> Output:
        revisions = await self._storage.revisions(name, namespace)
        if is_blocked(revisions):
            return _error("UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress")
        match = _CHART.fullmatch(chart.name)
        if match is None or not await asyncio.to_thread(chart.read_bytes):
            return _error(f"UPGRADE FAILED: {chart.name} is not a chart")
        values = yaml.safe_load(await asyncio.to_thread(file.read_text))
        new = revision(
            name,
            namespace=namespace,
            number=revisions[-1]["version"] + 1,
            status=PENDING,
            chart=(match["name"], match["version"]),
            app=f"v{match['version']}",
            values=values,
        )
        await self._client.create(SECRETS, new)
        pending = (await self._storage.revisions(name, namespace))[-1]
        if self.failures and (failure := self.failures.pop(0)):
            await self._storage.set_status(pending, _FAILED)
            return _error(f"UPGRADE FAILED: {failure}")
        await self._apply(name, namespace, values)
        for old in revisions:
            if old["info"]["status"] == DEPLOYED:
                await self._storage.set_status(old, SUPERSEDED)
        await self._storage.set_status(pending, DEPLOYED)
        return Output(status=0, stdout=f'Release "{name}" has been upgraded. Happy Helming!\n')

    async def _apply(self, name: str, namespace: str, values: dict[str, Any]) -> None:
        """Change the Deployment's image and features, and wait for its Pods."""
        image = f"rancher/rancher:{values['rancherImageTag']}"
        environment = [{"name": "CATTLE_FEATURES", "value": values["features"]}] if values.get("features") else []
        template = {"spec": {"containers": [{"name": name, "image": image, "env": environment}]}}
        patch = MergePatch({"spec": {"template": template}})
        written = await self._client.patch(DEPLOYMENTS, name, patch, namespace=namespace)
        generation = objects.metadata(written)["generation"]
        while True:
            deployment = await self._client.get(DEPLOYMENTS, name, namespace=namespace)
            status = objects.status(deployment)
            wanted = objects.spec(deployment)["replicas"]
            if status.get("observedGeneration") == generation and status.get("availableReplicas") == wanted:
                return
            await asyncio.sleep(_POLL)


def _parsed(argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return words, and options by name without dashes."""
    words: list[str] = []
    options: dict[str, str] = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            words.append(word)
        else:
            options[word[2:]] = "" if word in {"--wait", "--reset-values"} else rest.pop(0)
    return words, options


def _listed(release: dict[str, Any]) -> dict[str, Any]:
    chart = release["chart"]["metadata"]
    return {
        "revision": release["version"],
        "status": release["info"]["status"],
        "chart": f"{chart['name']}-{chart['version']}",
        "app_version": chart["appVersion"],
    }


def _error(text: str) -> Output:
    return Output(status=1, stderr=f"Error: {text}\n")
