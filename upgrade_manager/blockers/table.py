"""All finders."""

from __future__ import annotations

from upgrade_manager.blockers import jobs, known, node_return, repository, upgrade_controller

FINDERS = (
    *known.FINDERS,
    *node_return.FINDERS,
    *jobs.FINDERS,
    *upgrade_controller.FINDERS,
    *repository.FINDERS,
)
