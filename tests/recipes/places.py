"""Every mapping and document that has an entry for each phase, component, blocker reason, wait, node state or step.

`python -m tests.recipes.places` prints what is missing: CONTRIBUTING's recipes use it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hack.bench.phase_changes import AWAITED
from hack.demo.stalls import STALLS
from tests.pipeline.test_crash_sweep_ends import FAILING
from tests.pipeline.test_failures import FAILURES
from tests.resources.test_builders import everything
from tests.support.managers.stall_matrix import CELLS
from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.keys import LABEL_COMPONENT, Component
from upgrade_manager.api.node_states import GROUPS, NodeState
from upgrade_manager.api.phases import PHASE_SPECS, NodeWork, PhaseName, phase_of
from upgrade_manager.api.progress import NODE_SHARES, STEPS
from upgrade_manager.blockers.known_wait import SuspendedJobWait
from upgrade_manager.blockers.table import FINDERS
from upgrade_manager.blockers.wait import FailingJobWait, ForbiddenStopWait, JobWait, Wait, WaitKind
from upgrade_manager.display.tables import NODE_STYLES
from upgrade_manager.display.view import MILESTONES
from upgrade_manager.kube import objects
from upgrade_manager.kube.store import Store
from upgrade_manager.pipeline.engine import PIPELINE
from upgrade_manager.pipeline.metrics import PlanCollector
from upgrade_manager.pipeline.movement import ProgressTracker
from upgrade_manager.resources.owner import Owner
from upgrade_manager.toolkit.run.catalogue import COMMANDS, steps_of

ROOT = Path(__file__).parents[2]
CRD = "deploy/crds/management.harvesterhci.io_upgradeplans.yaml"
CHART_CRD = "deploy/chart/templates/crds/management.harvesterhci.io_upgradeplans.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One file that has an entry for each member of a kind."""

    #: Noun for the members, in a message.
    kind: str
    members: Collection[str]
    file: str
    #: Entry that a member has there.
    entry: str
    #: Return the members that have it.
    having: Callable[[], Collection[str]]
    #: Reasons, by member, why one needs none.
    exempt: Mapping[str, str] = field(default_factory=dict)

    def gaps(self) -> Iterator[str]:
        """Yield a sentence for each member without the entry, and for each exemption that is not needed."""
        found = set(self.having())
        for member in self.members:
            if member not in found and member not in self.exempt:
                yield f"{self.kind} {member} has no {self.entry} in {self.file}"
            if member in found and member in self.exempt:
                yield f"{self.kind} {member} has a {self.entry} in {self.file}, so its exemption is not needed"
        for member in self.exempt.keys() - set(self.members):
            yield f"{self.kind} {member} is exempt from a {self.entry} in {self.file}, and does not exist"


def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def _rows(file: str) -> set[str]:
    """Return the names in the first cells of all tables of a document."""
    cells = re.findall(r"^\| ([^|]+) \|", _text(file), flags=re.MULTILINE)
    return {name for cell in cells for name in cell.split(", ")}


def usual_minutes() -> dict[str, int]:
    """Return the minutes after which a Job is slow, by component or type, as docs/blockers.md has them."""
    _, _, text = _text("docs/blockers.md").partition("\nA Job is slow ")
    sentence, _, _ = text.partition("\n\n")
    return {work: int(minutes) for work, minutes in re.findall(r"`([a-z-]+)` (\d+) min", sentence)}


def _components(phases: Iterable[PhaseName | None]) -> set[str]:
    """Return the components of those phases that have one."""
    return {phase.spec.component for phase in phases if phase is not None and phase.spec.component is not None}


def _with_rule() -> set[str]:
    """Return the components of the phases that can fail by the rules."""
    rules = _text("tests/rules/api.txt")
    return _components(row.name for row in PHASE_SPECS if f"\n{row.name} can fail" in rules)


def _built() -> set[str]:
    """Return the components of the objects in the tests of all builders."""
    return {objects.labels(manifest)[LABEL_COMPONENT] for _, manifest in everything(Owner(name="up", uid="u"), "n1")}


def _words(file: str) -> set[str]:
    return set(re.findall(r"\w+", _text(file)))


def _waits_of_phases() -> set[str]:
    """Return the names of the waits that the pipeline names, or `job_wait` for those that it makes."""
    sources = (ROOT / "upgrade_manager/pipeline").rglob("*.py")
    words = {word for path in sources for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    return {
        one.kind.name for one in _classes(Wait) if one.__name__ in words or (one in _OF_JOBS and "job_wait" in words)
    }


#: The waits that `job_wait` makes.
_OF_JOBS = frozenset({FailingJobWait, ForbiddenStopWait, JobWait, SuspendedJobWait})


def _classes(base: type[Wait]) -> Iterator[type[Wait]]:
    """Yield the classes of waits that have a kind."""
    for one in base.__subclasses__():
        yield from _classes(one)
        if hasattr(one, "kind"):
            yield one


def _with_share() -> set[str]:
    """Return the states of a node whose upgrade has begun and counts in the progress."""
    return {state for group in GROUPS for state in group if state.upgraded or state.group in STEPS}


def _groups() -> set[str]:
    return {state for group in GROUPS for state in group}


def _steps() -> set[str]:
    return {step.name for command in COMMANDS for step in steps_of(command)}


def _with_values(file: str) -> set[str]:
    """Return the phases whose two values a file names."""
    words = _words(file)
    return {spec.name for spec in PHASE_SPECS if {spec.active, spec.completed} <= words}


def _exported(label: str) -> set[str]:
    """Return the values of a label in the metrics of a plan with one node."""
    store = Store()
    node = {"nodeUpgradeStatuses": {"n1": {"state": NodeState.PRE_DRAINING}}}
    store.replace([{"metadata": {"name": "up", "uid": "u"}, "spec": {}, "status": node}], "1")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    collector = PlanCollector(store, progress=ProgressTracker(), now=lambda: now, is_leader=lambda: True)
    collector.refresh()
    samples = (sample for family in collector.collect() for sample in family.samples)
    return {sample.labels[label] for sample in samples if label in sample.labels}


PHASES = [
    Place(kind="phase", members=tuple(PhaseName), file=file, entry=entry, having=having, exempt=exempt)
    for file, entry, having, exempt in (
        ("upgrade_manager/api/phases.py", "row in PHASE_SPECS", lambda: {row.name for row in PHASE_SPECS}, {}),
        (
            "upgrade_manager/api/phases.py",
            "weight and usual time above 0",
            lambda: {row.name for row in PHASE_SPECS if row.weight > 0 and row.usual > 0},
            {},
        ),
        ("upgrade_manager/pipeline/engine.py", "class in PIPELINE", lambda: {phase.name for phase in PIPELINE}, {}),
        (
            "upgrade_manager/api/progress.py",
            "count of its nodes in NODE_SHARES",
            lambda: {*NODE_SHARES, *(row.name for row in PHASE_SPECS if row.nodes is NodeWork.NONE)},
            {},
        ),
        ("upgrade_manager/pipeline/metrics.py", "value of the label phase", lambda: _exported("phase"), {}),
        (CRD, "value in a description", lambda: _with_values(CRD), {}),
        (CHART_CRD, "value in a description", lambda: _with_values(CHART_CRD), {}),
        (
            "hack/bench/phase_changes.py",
            "object in AWAITED",
            lambda: AWAITED,
            {"Initialize": "it waits for kubelets", "MetadataPopulate": "it waits for the repository"},
        ),
        (
            "tests/support/managers/stall_matrix.py",
            "stall in CELLS",
            lambda: {row.name for row in PHASE_SPECS if row.active in {cell.moment for cell in CELLS}},
            {"Initialize": "it fails within a minute"},
        ),
    )
]
_JOBLESS = dict.fromkeys(("iso", "repo"), "it has no Jobs")
_SURVEYED = {"survey": "its phase is that of image-preload, with which its failed Jobs are kept"}
_AROUND = dict.fromkeys(
    ("agent-hold", "agent-release", "skip-on", "skip-off"), "tests/pipeline/phases/test_host_changes_runs.py"
)
_HARMLESS = {**_JOBLESS, **_AROUND, "checksums": "its phase continues without the checksums"}
#: Components whose Jobs fail without failing the plan.
_TOLERATED = {**_HARMLESS, **_SURVEYED, "image-cleanup": "the plan succeeds, and names the images that stay"}
COMPONENTS = [
    Place(kind="component", members=tuple(Component), file=file, entry=entry, having=having, exempt=exempt)
    for file, entry, having, exempt in (
        (
            "upgrade_manager/api/phases.py",
            "phase whose failed Jobs are kept",
            lambda: _components(row.name for row in PHASE_SPECS),
            {**_HARMLESS, **_SURVEYED},
        ),
        ("tests/resources/test_builders.py", "builder in everything()", _built, {}),
        (
            "tests/pipeline/test_crash_sweep_ends.py",
            "phase in FAILING",
            lambda: _components(phase for _, phase in FAILING.values()),
            _TOLERATED,
        ),
        (
            "tests/pipeline/test_failures.py",
            "phase in FAILURES",
            lambda: _components(phase_of(failure.last) for failure in FAILURES.values()),
            _TOLERATED,
        ),
        ("tests/rules/api.txt", "rule that its phase can fail", _with_rule, _TOLERATED),
        (
            "docs/blockers.md",
            "usual time",
            usual_minutes,
            {**_JOBLESS, "node-upgrade": "each type of its Jobs has a usual time"},
        ),
    )
]
#: Reasons of which `--break` and docs/stalls.md have no example.
_UNBROKEN = {
    "CleanupRefused": "tests/pipeline/test_refused_removals.py",
    "LeftoverHook": "tests/pipeline/node_upgrade/test_waits.py",
    "JobSlow": "tests/blockers/test_jobs.py",
    "ImageMissing": "tests/pipeline/phases/test_survey_runs.py",
    "LedgerUnsettled": "tests/pipeline/node_upgrade/test_vm_restore_runs.py",
    "StrategyContested": "tests/pipeline/node_upgrade/test_contest.py",
    **dict.fromkeys(
        ("KubernetesVersionChanged", "NodeUnavailable", "MachineAmbiguous", "NoMigrationTarget", "CordonRefused"),
        "tests/pipeline/node_upgrade/test_gate.py",
    ),
}
_UNLISTED = {
    **_UNBROKEN,
    "WriteRefused": "`--break write-refused`",
    "HookForeign": "`--break hook-foreign`",
    "NodeMissing": "`--break node-label`",
    "ImagePullFailed": "`--break image-pull`",
    "ContainerFailing": "`--break container`",
    "NodePaused": "it is a user's choice",
}
REASONS = [
    Place(kind="blocker reason", members=tuple(BlockerReason), file=file, entry=entry, having=having, exempt=exempt)
    for file, entry, having, exempt in (
        (
            "upgrade_manager/blockers/table.py",
            "finder in FINDERS",
            lambda: {reason for finder in FINDERS for reason in finder.reasons},
            dict.fromkeys(("WriteRefused", "CleanupRefused"), "blockers/refusals.py reports it"),
        ),
        ("upgrade_manager/pipeline/metrics.py", "value of the label reason", lambda: _exported("reason"), {}),
        (CRD, "value in a description", lambda: _words(CRD), {}),
        (CHART_CRD, "value in a description", lambda: _words(CHART_CRD), {}),
        ("docs/blockers.md", "row", lambda: _rows("docs/blockers.md"), {}),
        (
            "hack/demo/stalls.py",
            "break in STALLS",
            lambda: {reason for stall in STALLS.values() for reason in stall.reasons},
            _UNBROKEN,
        ),
        (
            "tests/support/managers/stall_matrix.py",
            "stall in CELLS",
            lambda: {cell.reason for cell in CELLS},
            _UNLISTED,
        ),
    )
]
WAITS = [
    Place(kind="wait", members=WaitKind.__members__, file=file, entry=entry, having=having)
    for file, entry, having in (
        (
            "upgrade_manager/blockers/table.py",
            "finder in FINDERS",
            lambda: {finder.wait.kind.name for finder in FINDERS},
        ),
        ("upgrade_manager/pipeline", "phase that waits so", _waits_of_phases),
    )
]
_BEFORE = ("ImagePreloading", "ImagePreloaded", "ImagePreloadFailed", "UpgradePaused")
_NO_EVENT = (
    "ImagePreloading",
    "ImagePreloaded",
    "ImagePreloadFailed",
    "PreDrained",
    "PreDrainFailed",
    "PostDrainFailed",
    "SingleNodeUpgradeFailed",
    "ImageCleaning",
    "ImageCleaned",
    "ImageCleanFailed",
)
STATES = [
    Place(kind="node state", members=tuple(NodeState), file=file, entry=entry, having=having, exempt=exempt)
    for file, entry, having, exempt in (
        (
            "upgrade_manager/api/node_states.py",
            "group in GROUPS",
            _groups,
            {},
        ),
        (
            "upgrade_manager/api/progress.py",
            "share of a node's upgrade in STEPS",
            _with_share,
            dict.fromkeys(_BEFORE, "the node's upgrade has not begun"),
        ),
        ("upgrade_manager/display/tables.py", "colour in NODE_STYLES", lambda: NODE_STYLES, {}),
        (
            "upgrade_manager/display/view.py",
            "event in MILESTONES",
            lambda: MILESTONES,
            dict.fromkeys(_NO_EVENT, "no event records when a node reaches it"),
        ),
        ("upgrade_manager/pipeline/metrics.py", "value of the label state", lambda: _exported("state"), {}),
        (CRD, "value in a description", lambda: _words(CRD), {}),
        (CHART_CRD, "value in a description", lambda: _words(CHART_CRD), {}),
    )
]
STEPS_OF_JOBS = [
    Place(
        kind="step",
        members=_steps(),
        file="docs/toolkit.md",
        entry="row",
        having=lambda: _rows("docs/toolkit.md"),
        exempt=dict.fromkeys(("find-vms", "remove-images"), "the text about its command describes it"),
    )
]
PLACES = (*PHASES, *COMPONENTS, *REASONS, *WAITS, *STATES, *STEPS_OF_JOBS)


if __name__ == "__main__":
    sys.stdout.writelines(f"{gap}\n" for place in PLACES for gap in place.gaps())
