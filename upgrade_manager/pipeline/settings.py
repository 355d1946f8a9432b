from __future__ import annotations

from dataclasses import dataclass

#: Node jobs use this address; the manager too, unless it runs outside the cluster.
DEFAULT_REPO_URL = "http://{service}.harvester-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the pipeline is told by whoever starts the manager."""

    #: The manager's own version: the toolkit's tag while nothing better is known.
    version: str
    #: Where the upgrade repository answers: {plan} stands for the plan's name, {service} for its Service's.
    repo_url: str = DEFAULT_REPO_URL
    #: Service account of the Jobs, in harvester-system.
    job_service_account: str = "harvester"
    #: Service account of the Plans' Jobs, in cattle-system.
    plan_service_account: str = "system-upgrade-controller"
