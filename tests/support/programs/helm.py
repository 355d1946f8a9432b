"""The pinned Helm, run on the chart of deploy."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.control_plane.assets import find_tool
from tests.support.programs.kustomize import DEPLOY

CHART = DEPLOY / "chart"
NAMESPACE = "harvester-system"
#: Labels that Helm adds to the objects of the manifests.
LABELS = ("helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by")
KEEP = "helm.sh/resource-policy"
#: Commands that read the chart's values.
WITH_VALUES = {"template", "lint", "install", "upgrade"}
#: The Deployments.
MANAGER, WEBHOOK = "harvester-upgrade-manager", "harvester-upgrade-manager-webhook"


@dataclass(frozen=True, slots=True)
class Helm:
    """Helm with its files in one folder, whose kubeconfig it uses."""

    folder: Path

    def run(self, *arguments: str, namespace: str = NAMESPACE) -> subprocess.CompletedProcess[str]:
        """Run Helm to its end."""
        return subprocess.run(  # noqa: S603  # our own Helm
            self._argv(arguments, namespace), capture_output=True, text=True, check=False, env=self.environment
        )

    async def start(self, *arguments: str, namespace: str = NAMESPACE) -> asyncio.subprocess.Process:
        """Start Helm, whose output is lost."""
        null = asyncio.subprocess.DEVNULL
        argv = self._argv(arguments, namespace)
        return await asyncio.create_subprocess_exec(*argv, env=self.environment, stdout=null, stderr=null)

    @property
    def environment(self) -> dict[str, str]:
        """All variables of Helm's process."""
        home = {name: str(self.folder / "helm") for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.folder / "kubeconfig"),
            **home,
        }

    @staticmethod
    def _argv(arguments: Iterable[str], namespace: str) -> list[str]:
        command, *others = arguments
        # Required; what a test sets wins.
        image = ["--set", f"image.repository={MANAGER}"] if command in WITH_VALUES else []
        return [str(find_tool("helm", os.environ)), "--namespace", namespace, command, *image, *others]

    def rendered(self, *settings: str) -> list[dict[str, Any]]:
        """Return the objects of the chart with values as in --set, without the hook of `helm test`."""
        ended = self.run("template", "x", str(CHART), "--skip-tests", *_flags(settings))
        assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
        return [one for one in yaml.safe_load_all(ended.stdout) if one]

    async def succeed(self, *arguments: str) -> str:
        """Run Helm beside other tasks, check that it succeeds without a warning, and return its output."""
        ended = await asyncio.to_thread(self.run, *arguments)
        assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
        return ended.stdout


def deployment(manifests: list[dict[str, Any]], name: str = MANAGER) -> dict[str, Any]:
    """Return the spec of a Deployment."""
    (found,) = [one for one in manifests if (one["kind"], one["metadata"]["name"]) == ("Deployment", name)]
    return dict(found["spec"])


def pod(manifests: list[dict[str, Any]], name: str = MANAGER) -> dict[str, Any]:
    """Return the spec of a Deployment's Pods."""
    return dict(deployment(manifests, name)["template"]["spec"])


def without_release(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the object without what Helm adds."""
    metadata = dict(manifest["metadata"])
    for field, added in (("labels", LABELS), ("annotations", (KEEP,))):
        metadata[field] = {key: value for key, value in metadata.get(field, {}).items() if key not in added}
        if not metadata[field]:
            del metadata[field]
    return manifest | {"metadata": metadata}


def _flags(settings: Iterable[str]) -> list[str]:
    return [part for setting in settings for part in ("--set-json" if "=[" in setting else "--set", setting)]
