"""The table of all finders.

pipeline/blocker_report.py passes the table to finder.py, which runs the finders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.blockers import (
    drains,
    failing_jobs,
    forbidden_stops,
    imports,
    jobs,
    known,
    leftover_budgets,
    migrations,
    node_return,
    rancher,
    repository_outage,
    upgrade_controller,
    volumes,
)

if TYPE_CHECKING:
    from upgrade_manager.blockers.finder import Row

FINDERS: tuple[Row, ...] = (
    *known.FINDERS,
    *node_return.FINDERS,
    *jobs.FINDERS,
    *failing_jobs.FINDERS,
    *imports.FINDERS,
    *upgrade_controller.FINDERS,
    *repository_outage.FINDERS,
    *drains.FINDERS,
    *forbidden_stops.FINDERS,
    *migrations.FINDERS,
    *volumes.FINDERS,
    *leftover_budgets.FINDERS,
    *rancher.FINDERS,
)
