"""The upgrade, as a table: the one place that says what it consists of and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.phases import PhaseName
from upgrade_manager.pipeline.phases.cluster_upgrade import ClusterUpgrade
from upgrade_manager.pipeline.phases.image_cleanup import ImageCleanup
from upgrade_manager.pipeline.phases.image_preload import ImagePreload
from upgrade_manager.pipeline.phases.initialize import Initialize
from upgrade_manager.pipeline.phases.iso_download import ISODownload
from upgrade_manager.pipeline.phases.metadata_populate import MetadataPopulate
from upgrade_manager.pipeline.phases.node_upgrade import NodeUpgrade
from upgrade_manager.pipeline.phases.repo_create import RepoCreate

if TYPE_CHECKING:
    from upgrade_manager.pipeline.phases.base import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One phase of the upgrade."""

    name: PhaseName
    phase: Phase


PIPELINE: tuple[Row, ...] = (
    Row(name=PhaseName.INITIALIZE, phase=Initialize()),
    Row(name=PhaseName.ISO_DOWNLOAD, phase=ISODownload()),
    Row(name=PhaseName.REPO_CREATE, phase=RepoCreate()),
    Row(name=PhaseName.METADATA_POPULATE, phase=MetadataPopulate()),
    Row(name=PhaseName.IMAGE_PRELOAD, phase=ImagePreload()),
    Row(name=PhaseName.CLUSTER_UPGRADE, phase=ClusterUpgrade()),
    Row(name=PhaseName.NODE_UPGRADE, phase=NodeUpgrade()),
    Row(name=PhaseName.IMAGE_CLEANUP, phase=ImageCleanup()),
)
