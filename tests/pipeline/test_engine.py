from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from upgrade_manager.api.phases import PhaseName
from upgrade_manager.pipeline.engine import PIPELINE, Engine, Row
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.phases.base import Completed, Failed, Phase, Waiting

if TYPE_CHECKING:
    from tests.support.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult

FIRST, SECOND = PhaseName.INITIALIZE, PhaseName.ISO_DOWNLOAD


class Told(Phase):
    """Does as it is told, and tells what it was asked."""

    def __init__(
        self, name: PhaseName, calls: list[str], *, outcome: PhaseResult | None = None, refusal: Failed | None = None
    ) -> None:
        self.name = name
        self._calls = calls
        self._outcome = outcome or Completed()
        self._refusal = refusal
        #: What it waits for before it is left.
        self.unfinished: Waiting | None = None

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Let it in, or not."""
        self._calls.append(f"enter {self.name} at {ctx.status.phase}")
        return self._refusal

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """End as told."""
        self._calls.append(f"run {self.name} at {ctx.status.phase}")
        return self._outcome

    async def exit(self, ctx: ReconcileContext) -> Waiting | None:
        """Leave."""
        self._calls.append(f"exit {self.name} at {ctx.status.phase}")
        return self.unfinished


def engine(calls: list[str], *, outcome: PhaseResult | None = None, refusal: Failed | None = None) -> Engine:
    """Two phases; `outcome` of both, `refusal` of the second."""
    first, second = Told(FIRST, calls, outcome=outcome), Told(SECOND, calls, outcome=outcome, refusal=refusal)
    return Engine([Row(name=FIRST, phase=first), Row(name=SECOND, phase=second)])


REMOVAL = "waiting for the objects that UpgradePlan up made to be removed: the upgrade is done"


def progressing(ctx: ReconcileContext) -> str:
    (condition,) = ctx.status["conditions"]
    return str(condition["message"])


async def context_at(cluster: Harvester, phase: str) -> ReconcileContext:
    return cluster.context(await cluster.plan(status={"currentPhase": phase}))


WALK = [
    "run Initialize at Initializing",
    "exit Initialize at Initialized",
    "enter ISODownload at Initialized",
    "run ISODownload at ISODownloading",
    "exit ISODownload at ISODownloaded",
]


@pytest.mark.rule(
    "api: currentPhase is a phase value",
    "pipeline: the engine runs any table; a phase is a file and a row",
    "pipeline: a phase is entered once, before its active value is recorded",
    "pipeline: a phase is left once, after its completed value is recorded and before the next one",
)
@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        pytest.param("Initializing", WALK, id="the first phase"),
        pytest.param("Initialized", WALK[1:], id="its end: what comes after the record is done again"),
        pytest.param("ISODownloading", WALK[3:], id="the second phase"),
        pytest.param("ISODownloaded", WALK[4:], id="the end of the last one"),
    ],
)
async def test_a_walk_begins_at_the_recorded_phase_and_ends_with_the_table(
    cluster: Harvester, recorded: str, asked: list[str]
) -> None:
    calls: list[str] = []
    ctx = await context_at(cluster, recorded)
    assert await engine(calls).advance(ctx) == Completed()
    assert calls == asked
    assert ctx.status.phase == SECOND.completed


@pytest.mark.rule("pipeline: a phase runs until it completes or fails")
@pytest.mark.parametrize(
    "outcome", [Waiting(message="waiting for rain"), Failed(cause="flood")], ids=["waits", "has failed"]
)
async def test_a_walk_stops_where_a_phase(cluster: Harvester, outcome: PhaseResult) -> None:
    calls: list[str] = []
    ctx = await context_at(cluster, "Initializing")
    assert await engine(calls, outcome=outcome).advance(ctx) == outcome
    assert calls == WALK[:1]
    assert ctx.status.phase == FIRST.active


@pytest.mark.rule("pipeline: a phase is left once, after its completed value is recorded and before the next one")
async def test_a_phase_that_is_not_left_yet_is_over_all_the_same(cluster: Harvester) -> None:
    calls: list[str] = []
    first, second = Told(FIRST, calls), Told(SECOND, calls)
    table = Engine([Row(name=FIRST, phase=first), Row(name=SECOND, phase=second)])
    ctx = await context_at(cluster, "Initializing")
    first.unfinished = Waiting(message="waiting for the last guest")
    assert await table.advance(ctx) == first.unfinished
    assert ctx.status.phase == FIRST.completed
    assert calls == WALK[:2]
    first.unfinished = None
    assert await table.advance(ctx) == Completed()
    assert calls == WALK[:2] + WALK[1:]


@pytest.mark.parametrize(
    ("recorded", "outcome", "said"),
    [
        pytest.param("Initializing", Completed(), REMOVAL, id="after the last phase"),
        pytest.param(
            "Initialized", Failed(cause="flood"), f"waiting for phase {SECOND}: nothing is known yet", id="at"
        ),
    ],
)
async def test_what_is_waited_for_is_said_before_anything_is_known_of_it(
    cluster: Harvester, recorded: str, outcome: PhaseResult, said: str
) -> None:
    ctx = await context_at(cluster, recorded)
    await engine([], outcome=outcome).advance(ctx)
    assert progressing(ctx) == said


async def test_between_two_phases_the_next_one_is_waited_for(cluster: Harvester) -> None:
    ctx = await context_at(cluster, "Initializing")
    await engine([], refusal=Failed(cause="not allowed")).advance(ctx)
    assert progressing(ctx) == f"waiting for phase {SECOND} to begin"


@pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
@pytest.mark.parametrize(
    ("phase", "spec", "said"),
    [
        pytest.param(
            "Initializing",
            {"version": "v1.7.0"},
            "Reading Version harvester-system/v1.7.0 and checking the nodes",
            id="Initialize by version",
        ),
        pytest.param(
            "Initializing",
            {"image": "iso"},
            "Reading Setting server-version and checking the nodes",
            id="Initialize by image",
        ),
        pytest.param(
            "MetadataPopulating",
            {"version": "v1.7.0"},
            "Reading http://up-repo.harvester-system/harvester-iso/harvester-release.yaml",
            id="MetadataPopulate",
        ),
        pytest.param(
            "NodeUpgrading", {"version": "v1.7.0"}, "waiting for phase NodeUpgrade: nothing is known yet", id="another"
        ),
    ],
)
async def test_each_phase_begins_with_what_it_looks_at_first(
    cluster: Harvester, phase: str, spec: dict[str, str], said: str
) -> None:
    ctx = cluster.context(await cluster.plan(spec=spec, status={"currentPhase": phase}))
    assert Engine(PIPELINE).initial_message(ctx) == said


@pytest.mark.rule("pipeline: a phase is entered once, before its active value is recorded")
async def test_a_phase_that_may_not_begin_is_not_recorded(cluster: Harvester) -> None:
    calls: list[str] = []
    ctx = await context_at(cluster, "Initializing")
    refusal = Failed(cause="not allowed")
    assert await engine(calls, refusal=refusal).advance(ctx) == refusal
    assert calls == WALK[:3]
    assert ctx.status.recorded_phases() == [FIRST.completed]


@pytest.mark.parametrize("phase", ["Polishing", "NodeUpgrading"], ids=["of a newer version", "not in the table"])
async def test_a_phase_that_is_unknown_is_an_error_that_names_it(cluster: Harvester, phase: str) -> None:
    with pytest.raises(RetryError, match=f"does not know the phase {phase}"):
        await engine([]).advance(await context_at(cluster, phase))
