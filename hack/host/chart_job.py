"""The container of the Job by which RKE2's helm-controller installs and upgrades a chart.

tests/toolkit/charts/test_multus_on_a_server.py runs it with a real helm and the Job of the real controller.

Its decisions are those of the script `entry` of k3s-io/klipper-helm (helm_update), of which the commit 108cae2 of the
fork Mshnwq/klipper-helm was read; rancher/rancher#50921 has its output with RKE2. In this order:

- without a revision: helm install;
- a latest revision that a killed helm has left (pending-*, uninstalling, superseded) becomes `failed`. One that was
  pending-upgrade or superseded is then upgraded once more, with the exit status of that;
- deployed: helm upgrade;
- failed: with the policy reinstall, helm uninstall and helm install; with any other, exit status 1.

So a chart is uninstalled after an interrupted upgrade whose repetition fails, too, or is interrupted before helm has
stored a new revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from hack.actors.helm_storage import HelmStorage

    #: Runs helm and returns its exit status.
    RunHelm = Callable[..., Awaitable[int]]

_FAILED, _DEPLOYED, _REINSTALL = "failed", "deployed", "reinstall"
_INTERRUPTED = {"pending-install", "pending-upgrade", "pending-rollback", "superseded", "uninstalling"}
_REPEATED = {"pending-upgrade", "superseded"}


class ChartJob:
    """Run the container with the variables that the controller gave it."""

    def __init__(self, environ: Mapping[str, str], *, chart: Path, helm: RunHelm, storage: HelmStorage) -> None:
        self._release = (environ["NAME"], environ["TARGET_NAMESPACE"])
        self._policy = environ.get("FAILURE_POLICY") or _REINSTALL
        timeout = environ.get("TIMEOUT")
        self._options = ("--timeout", timeout) if timeout else ()
        self._chart = str(chart)
        self._helm = helm
        self._storage = storage

    async def run(self) -> int:
        """Run to the end and return the exit status."""
        revisions = await self._storage.revisions(*self._release)
        if not revisions:
            return await self._change("install")
        status = str(revisions[-1]["info"]["status"])
        if status in _INTERRUPTED:
            await self._storage.set_status(revisions[-1], _FAILED)
        if status in {_DEPLOYED, *_REPEATED}:
            return await self._change("upgrade")
        if self._policy != _REINSTALL:
            return 1
        return await self._helm("uninstall", self._release[0], "--wait") or await self._change("install")

    async def _change(self, verb: str) -> int:
        return await self._helm(verb, self._release[0], self._chart, *self._options)
