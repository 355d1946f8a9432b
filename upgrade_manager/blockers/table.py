"""All finders."""

from __future__ import annotations

from upgrade_manager.blockers import jobs, repository, upgrade_controller

FINDERS = (*jobs.FINDERS, *upgrade_controller.FINDERS, *repository.FINDERS)
