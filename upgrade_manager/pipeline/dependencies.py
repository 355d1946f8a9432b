"""The collaborators and settings of the controller, which cli/leader.py makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from upgrade_manager.api.toolkit_image import ToolkitConfig
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.preflight.kubelets import KubeletReader
    from upgrade_manager.release.repository_client import RepositoryClient
    from upgrade_manager.runtime.kube_metrics import InformerMetrics
    from upgrade_manager.runtime.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of the pipeline, from flags and environment."""

    #: The flags about the toolkit image, which Initialize reads.
    toolkit: ToolkitConfig
    #: Base URL of the upgrade repository; {plan} is the plan's name, {service} the name of the repository's Service.
    repo_url: str
    #: Service account of the Jobs, in harvester-system.
    job_service_account: str
    #: Service account of the Plans' Jobs, in cattle-system.
    plan_service_account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """The controller's collaborators."""

    client: Client
    repository: RepositoryClient
    certificates: CertificateProbe
    kubelets: KubeletReader
    settings: Settings
    clock: Clock
    random: Random
    metrics: Metrics
    informer_metrics: InformerMetrics
    is_leader: Callable[[], bool]
