"""An UpgradePlan as a whole."""

from __future__ import annotations

from pydantic import Field

from upgrade_manager.api import keys
from upgrade_manager.api.annotations import PlanAnnotations
from upgrade_manager.api.conditions import DEGRADED, PROGRESSING, TRUE, Condition
from upgrade_manager.api.model import ApiModel, StringList, StringMap
from upgrade_manager.api.phases import FAILED, SUCCEEDED, PhaseName, is_terminal, phase_of
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.api.status import UpgradePlanStatus


class Metadata(ApiModel):
    """The part of an object's metadata that decisions are made from."""

    name: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: StringMap = Field(default_factory=dict)
    annotations: StringMap = Field(default_factory=dict)
    finalizers: StringList = Field(default_factory=list)


class UpgradePlan(ApiModel):
    """An upgrade of this Harvester cluster to another release, carried out by the upgrade manager once created.

    Watch it with `kubectl get upgradeplans -w`; what happened is told by `kubectl describe upgradeplans`.
    """

    api_version: str = keys.API_VERSION
    kind: str = keys.KIND
    metadata: Metadata = Field(default_factory=Metadata)
    spec: UpgradePlanSpec = Field(
        default_factory=UpgradePlanSpec,
        description="What to upgrade to, and how. One of version and image is needed; these two and the field upgrade "
        "are fixed once the plan exists, so for another release delete the plan and create a new one.",
    )
    status: UpgradePlanStatus = Field(
        default_factory=UpgradePlanStatus,
        description="How far the plan is; written by the upgrade manager only.",
    )

    @classmethod
    def parse(cls, obj: object) -> UpgradePlan:
        """Read a raw object; never fails, because what cannot be read is as good as absent (see `ApiModel`)."""
        return cls.read(obj)

    @property
    def name(self) -> str:
        """The plan's name."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The plan's identity, for ownerReferences and events."""
        return self.metadata.uid

    @property
    def annotations(self) -> PlanAnnotations:
        """The annotations as typed values."""
        return PlanAnnotations(self.metadata.annotations)

    @property
    def phase(self) -> PhaseName | None:
        """The phase of the current phase value; None before the first, at the end, and for an unknown value."""
        return phase_of(self.status.current_phase)

    @property
    def ended(self) -> bool:
        """Whether the plan has Succeeded or Failed."""
        return is_terminal(self.status.current_phase)

    @property
    def succeeded(self) -> bool:
        """Whether the plan has ended well."""
        return self.status.current_phase == SUCCEEDED

    @property
    def failed(self) -> bool:
        """Whether the plan has ended badly."""
        return self.status.current_phase == FAILED

    @property
    def progressing(self) -> bool:
        """Whether the condition Progressing is True: the plan occupies the cluster."""
        return self._holds(PROGRESSING)

    @property
    def degraded(self) -> bool:
        """Whether the condition Degraded is True: a step raised an error that is retried."""
        return self._holds(DEGRADED)

    @property
    def deleting(self) -> bool:
        """Whether the plan is being deleted and waits for its finalizer."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def finalized(self) -> bool:
        """Whether our finalizer is on the plan."""
        return keys.FINALIZER in self.metadata.finalizers

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type; None where there is none."""
        return next((entry for entry in self.status.conditions if entry.type == type_), None)

    def _holds(self, type_: str) -> bool:
        found = self.condition(type_)
        return found is not None and found.status == TRUE
