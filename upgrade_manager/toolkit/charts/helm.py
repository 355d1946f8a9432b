"""Runs helm, a program of the Pod's image.

rancher.py, addons.py and helm_releases.py call helm by it; cli/toolkit.py creates the object.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from upgrade_manager.kube.errors import Transient
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from upgrade_manager.toolkit.host.host_programs import HostPrograms

#: Seconds for a call that only reads.
_READ_TIMEOUT = 120.0
#: Seconds in which an upgrade's workloads must be ready, and further seconds in which helm must report the result.
_UPGRADE_TIMEOUT = 1200
_REPORT_TIMEOUT = 120.0
#: Revisions that the cluster keeps of a release.
_HISTORY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The name of a Helm release."""

    name: str
    namespace: str

    def __str__(self) -> str:
        """Return the release for messages."""
        return f"Helm release {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision of a release."""

    status: str
    #: Name and version: `fleet-107.0.2+up0.13.2`.
    chart: str
    app_version: str


class Helm:
    """Reads and upgrades releases; `environment` has the only variables of the Pod that helm sees."""

    def __init__(self, programs: HostPrograms, *, environment: Mapping[str, str]) -> None:
        self._programs = programs
        self._environment = environment

    async def latest(self, release: Release) -> Revision:
        """Return the latest revision. Raises Transient."""
        text = await self._read("history", release, "--max", "1", "--output", "json")
        try:
            last = json.loads(text)[-1]
            return Revision(status=last["status"], chart=last["chart"], app_version=last["app_version"])
        except (ValueError, LookupError, TypeError) as error:
            raise StepFailed(f"helm history {release.name}: its output is not understood") from error

    async def values(self, release: Release) -> dict[str, Any]:
        """Return the values that users and installers gave, without the chart's defaults. Raises Transient."""
        text = await self._read("get", release, "--output", "yaml", part=("values",))
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise StepFailed(f"helm get values {release.name}: its output is not YAML") from error
        if not isinstance(values, dict | None):
            raise StepFailed(f"helm get values {release.name}: its output is not a mapping")
        return values or {}

    async def upgrade(self, release: Release, *, chart: Path, values: Path) -> None:
        """Upgrade the release with exactly these values, and wait for its workloads. Raises ProgramFailed."""
        argv = (
            *("helm", "upgrade", release.name, str(chart), "--namespace", release.namespace),
            *("--reset-values", "--values", str(values), "--history-max", str(_HISTORY)),
            *("--wait", "--timeout", f"{_UPGRADE_TIMEOUT}s"),
        )
        timeout = _UPGRADE_TIMEOUT + _REPORT_TIMEOUT
        await run_program(self._programs, Call(argv=argv, timeout=timeout, environment=self._environment))

    async def _read(self, verb: str, release: Release, *options: str, part: tuple[str, ...] = ()) -> str:
        """Return the output. Raises Transient for a failure, because a read changes nothing and may be retried."""
        argv = ("helm", verb, *part, release.name, "--namespace", release.namespace, *options)
        output = await self._programs.run(Call(argv=argv, timeout=_READ_TIMEOUT, environment=self._environment))
        if output.status != 0:
            raise Transient(f"helm {verb} {release.name} returned {output.status}: {output.last_line or 'no output'}")
        return output.stdout
