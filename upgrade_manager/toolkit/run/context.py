"""The objects that the steps of a command work on: the host, the ISO, the API server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import Component
from upgrade_manager.api.names import FIRST_ATTEMPT, component_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path
    from random import Random

    from upgrade_manager.api.keys import JobType
    from upgrade_manager.kube.client import Client
    from upgrade_manager.toolkit.charts.chart_files import ChartFiles
    from upgrade_manager.toolkit.charts.helm import Helm
    from upgrade_manager.toolkit.host.host_programs import HostPrograms
    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.iso.checksums import Checksums
    from upgrade_manager.toolkit.iso.migration import Migration
    from upgrade_manager.toolkit.iso.release_files import ReleaseFiles
    from upgrade_manager.toolkit.iso.repository_files import RepositoryFiles
    from upgrade_manager.toolkit.run.plan_events import PlanEvents


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitContext:
    """One run of a command: on one node's host, or on the cluster."""

    #: The UpgradePlan's name.
    plan: str
    #: The uid of the plan; empty in a Job of an earlier version of the manager, and without a Job.
    plan_uid: str = ""
    #: The number of the plan's attempt, after which its Jobs are named.
    attempt: int = FIRST_ATTEMPT
    #: The name of the Job that runs the command, in harvester-system; empty without one.
    job: str = ""
    #: The node's name; empty for a command on the cluster.
    node: str
    #: The name of the Pod that runs the command; empty where the command does not need it.
    pod: str
    #: True if the command holds before the reboot.
    holds: bool = False
    #: True if the command vm-live-migrate-detector stops the VMs that it finds.
    shutdown: bool
    client: Client
    tree: HostTree
    programs: HostPrograms
    #: Helm releases of the cluster.
    helm: Helm
    #: The command's temporary folder, which is removed with the Pod.
    folder: Path
    #: Wall time, aware, UTC.
    now: Callable[[], datetime]
    #: Spreads the retries of several nodes.
    random: Random
    #: Files of the ISO.
    files: RepositoryFiles
    #: The checksums of the files of the ISO, which `node checksums` has computed.
    checksums: Checksums
    #: The mount point of the ISO, for `node checksums`.
    iso: Path
    #: Makes a text the Pod's termination message. Raises StepFailed.
    report: Callable[[str], None]
    #: The release's description, read once.
    release: ReleaseFiles
    #: The files of Harvester's chart repository in the cluster, once it is upgraded.
    charts: ChartFiles
    #: The rows of release/migrations that this upgrade carries out.
    migration: Migration
    #: Events about the plan.
    events: PlanEvents
    #: Annotations that this run knows to be absent from the Job, so that it need not read the Job again.
    absent: set[str] = field(default_factory=set, compare=False)

    def job_name(self, job_type: JobType) -> str:
        """Return the name of the node's Job of that type, in this attempt."""
        component = Component.NODE_UPGRADE
        return component_name(self.plan, component, job_type=job_type, node=self.node, attempt=self.attempt)
