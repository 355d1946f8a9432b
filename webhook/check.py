"""The interface of checks, and their findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from upgrade_manager.api.annotations import PlanAnnotations
from upgrade_manager.api.remedy import Remedy, remedy_text
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from upgrade_manager.api.toolkit_image import ToolkitConfig
    from webhook.cluster import ClusterReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A plan that is about to be created or changed, and the cluster that it would upgrade."""

    name: str
    spec: UpgradePlanSpec
    annotations: PlanAnnotations
    cluster: ClusterReader
    toolkit: ToolkitConfig

    @classmethod
    def of(cls, plan: object, *, cluster: ClusterReader, toolkit: ToolkitConfig) -> Subject:
        """Read a plan from JSON; fields of a wrong type count as absent."""
        return cls(
            name=objects.name(plan),
            spec=UpgradePlanSpec.read(objects.mapping(plan, "spec")),
            annotations=PlanAnnotations(objects.strings(plan, "metadata", "annotations")),
            cluster=cluster,
            toolkit=toolkit,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem with its remedies."""

    #: Names the object, what is wrong with it, and what to do if that is not a command.
    problem: str
    #: A command stands in a remedy, so that a terminal shows it alone on its line.
    remedies: tuple[Remedy, ...] = ()
    #: Path of a field of the plan; "" for the field of the check.
    field: str = ""
    #: False for a warning, with which the plan is admitted.
    denies: bool = True

    @property
    def message(self) -> str:
        """Problem and remedies as one text, as kubectl prints it."""
        return f"{self.problem}. {remedy_text(self.remedies)}" if self.remedies else self.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A row of the catalogue.

    `find` returns the problems, and nothing if the check passes. `find` raises NotInstalled if the cluster lacks the
    API that the check reads, and KubeError if the API cannot be read.
    """

    name: str
    #: Path of the field of the plan to which the findings belong.
    field: str
    find: Callable[[Subject], Awaitable[Iterable[Finding]]]


class CannotRun(Exception):
    """A check of the command `preflight` cannot be made by this user, or from this machine; the text is the reason."""


class NotNeeded(Exception):
    """A check of the command `preflight` does not apply, or the user has left it out; the text is the reason."""


class Outcome(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    #: A warning, for example that the cluster lacks the API that the check reads; the plan is admitted.
    WARNING = "warning"
    #: Of the command `preflight` alone: the check does not apply, or the user has left it out.
    SKIPPED = "skipped"
    #: Of the command `preflight` alone: the check cannot be made, so that the plan may still be refused.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The outcome of a check: only a failure has denying findings, and every outcome may have warnings."""

    name: str
    outcome: Outcome
    seconds: float
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
