"""The rows of release/migrations that belong to the upgrade of this run.

steps.py skips the steps of other rows, and charts/rancher_values.py leaves out their changes; cli/toolkit.py creates
the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import SETTING_SERVER_VERSION
from upgrade_manager.facts import versions
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SETTINGS
from upgrade_manager.release.migrations.pairs import rows_between
from upgrade_manager.toolkit.run.own_plan import find_plan

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.release.migrations.row import Row
    from upgrade_manager.toolkit.iso.release_files import ReleaseFiles


class Migration:
    """Reads the two releases once: a plan that is deleted meanwhile changes nothing."""

    def __init__(self, client: Client, release: ReleaseFiles, *, plan: str, plan_uid: str) -> None:
        self._client = client
        self._release = release
        self._plan = plan
        self._plan_uid = plan_uid
        self._rows: tuple[Row, ...] | None = None

    async def has(self, row: Row) -> bool:
        """Return True if this upgrade carries the row out. Raises KubeError and BadArchive."""
        if self._rows is None:
            plan = await find_plan(self._client, self._plan, uid=self._plan_uid)
            self._rows = rows_between(await self._previous(plan), await self._target(plan))
        return row in self._rows

    async def _previous(self, plan: Object | None) -> str:
        """Return the version that the plan leaves.

        The Job of a deleted plan runs to its end. The rows of a pair precede Harvester's upgrade, and until then
        Harvester's Setting has that version, too.
        """
        recorded = objects.text(plan, "status", "previousVersion")
        return recorded or versions.running(await self._client.get(SETTINGS, SETTING_SERVER_VERSION))

    async def _target(self, plan: Object | None) -> str:
        """Return the version to which the plan leads; a command that reads no other file does without the ISO."""
        recorded = objects.text(plan, "status", "releaseMetadata", "harvester")
        return recorded or (await self._release.versions())["harvester"]
