from __future__ import annotations

import pytest

from tests.support.cluster.harvester import Harvester
from tests.support.managers.phase_results import WAITS
from upgrade_manager.api.phases import PHASES, PhaseName
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.engine import PIPELINE, Engine
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.outcome import Completed, Failed, Phase, PhaseResult, Waiting

VERSION, CHECKING = {"version": "v1.7.0"}, "and checking the nodes"
RELEASE_FILE = "Reading http://up-repo.harvester-system/harvester-iso/harvester-release.yaml"
DISK_FULL, NOT_ALLOWED = Failed(cause="disk full"), Failed(cause="not allowed")
FIRST, SECOND = PhaseName.INITIALIZE, PhaseName.ISO_DOWNLOAD


class FakePhase(Phase):
    """Returns the given results, and records its calls."""

    def __init__(
        self, name: PhaseName, calls: list[str], *, result: PhaseResult | None = None, refusal: Failed | None = None
    ) -> None:
        self.name = name
        self.activity = f"Doing {name}"
        self._calls = calls
        self._result = result or Completed()
        self._refusal = refusal
        #: Result of `exit`.
        self.unfinished: Waiting | Failed | None = None

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Return the refusal."""
        self._calls.append(f"enter {self.name} at {ctx.status.phase}")
        return self._refusal

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        self._calls.append(f"run {self.name} at {ctx.status.phase}")
        return self._result

    async def exit(self, ctx: ReconcileContext) -> Waiting | Failed | None:
        """Return `unfinished`."""
        self._calls.append(f"exit {self.name} at {ctx.status.phase}")
        return self.unfinished


def engine(calls: list[str], *, result: PhaseResult | None = None, refusal: Failed | None = None) -> Engine:
    """Make two phases; `result` is both phases', `refusal` the second one's."""
    first, second = FakePhase(FIRST, calls, result=result), FakePhase(SECOND, calls, result=result, refusal=refusal)
    return Engine([first, second])


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
    ("recorded", "expected"),
    [
        pytest.param("Initializing", WALK, id="the first phase"),
        pytest.param("Initialized", WALK[1:], id="completed: exit is called again"),
        pytest.param("ISODownloading", WALK[3:], id="the second phase"),
        pytest.param("ISODownloaded", WALK[4:], id="the end of the last one"),
    ],
)
async def test_advance_starts_at_the_recorded_phase(cluster: Harvester, recorded: str, expected: list[str]) -> None:
    calls: list[str] = []
    ctx = await context_at(cluster, recorded)
    assert await engine(calls).advance(ctx) == Completed()
    assert calls == expected
    assert ctx.status.phase == SECOND.completed


@pytest.mark.rule("pipeline: a phase runs until it completes or fails")
@pytest.mark.parametrize(
    "result", [Waiting(waits=WAITS, message="waiting for a Job"), DISK_FULL], ids=["waits", "has failed"]
)
async def test_advance_stops_where_a_phase(cluster: Harvester, result: PhaseResult) -> None:
    calls: list[str] = []
    ctx = await context_at(cluster, "Initializing")
    assert await engine(calls, result=result).advance(ctx) == result
    assert calls == WALK[:1]
    assert ctx.status.phase == FIRST.active


@pytest.mark.rule("pipeline: a phase is left once, after its completed value is recorded and before the next one")
async def test_unfinished_exit_is_called_again(cluster: Harvester) -> None:
    calls: list[str] = []
    first, second = FakePhase(FIRST, calls), FakePhase(SECOND, calls)
    table = Engine([first, second])
    ctx = await context_at(cluster, "Initializing")
    first.unfinished = Waiting(waits=WAITS, message="waiting for a Job")
    assert await table.advance(ctx) == first.unfinished
    assert ctx.status.phase == FIRST.completed
    assert calls == WALK[:2]
    first.unfinished = None
    assert await table.advance(ctx) == Completed()
    assert calls == WALK[:2] + WALK[1:]


@pytest.mark.parametrize(
    ("recorded", "result", "refusal", "message"),
    [
        pytest.param("Initializing", None, None, "Removing the objects of UpgradePlan up", id="after the last phase"),
        pytest.param("Initialized", DISK_FULL, None, "Doing ISODownload", id="in a phase"),
        pytest.param("Initializing", None, NOT_ALLOWED, "Starting phase ISODownload", id="between two phases"),
    ],
)
async def test_progressing_has_a_message_before_the_first_run(
    cluster: Harvester, recorded: str, result: PhaseResult | None, refusal: Failed | None, message: str
) -> None:
    ctx = await context_at(cluster, recorded)
    await engine([], result=result, refusal=refusal).advance(ctx)
    (condition,) = ctx.status["conditions"]
    assert condition["message"] == message


@pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
@pytest.mark.parametrize(
    ("phase", "spec", "message"),
    [
        pytest.param("Initializing", VERSION, f"Reading Version harvester-system/v1.7.0 {CHECKING}", id="by version"),
        pytest.param("Initializing", {"image": "iso"}, f"Reading Setting server-version {CHECKING}", id="by image"),
        pytest.param("MetadataPopulating", VERSION, RELEASE_FILE, id="MetadataPopulate"),
        pytest.param("NodeUpgrading", VERSION, "Upgrading the nodes", id="another"),
    ],
)
async def test_initial_message_names_what_is_read_first(
    cluster: Harvester, phase: str, spec: dict[str, str], message: str
) -> None:
    ctx = cluster.context(await cluster.plan(spec=spec, status={"currentPhase": phase}))
    assert Engine([phase() for phase in PIPELINE]).initial_message(ctx) == message


@pytest.mark.rule("pipeline: a phase is entered once, before its active value is recorded")
async def test_refused_phase_is_not_recorded(cluster: Harvester) -> None:
    calls: list[str] = []
    ctx = await context_at(cluster, "Initializing")
    assert await engine(calls, refusal=NOT_ALLOWED).advance(ctx) == NOT_ALLOWED
    assert calls == WALK[:3]
    assert ctx.status.recorded_phases() == [FIRST.completed]


@pytest.mark.rule("pipeline: one ordered table defines the phases")
def test_table_has_every_phase_in_the_order_of_the_api() -> None:
    assert [phase().name for phase in PIPELINE] == list(PHASES)


@pytest.mark.rule("pipeline: the repository is recreated and scaled back up to ImageCleanup")
def test_every_phase_after_its_creation_keeps_the_repository() -> None:
    following = list(PHASES)[list(PHASES).index(PhaseName.REPO_CREATE) + 1 :]
    assert [phase.name for phase in PIPELINE if phase.reads_repository] == following


@pytest.mark.parametrize("phase", ["Polishing", "NodeUpgrading"], ids=["of a newer version", "not in the table"])
async def test_unknown_phase_is_an_error(cluster: Harvester, phase: str) -> None:
    with pytest.raises(RetryError, match=f"unknown phase {phase}"):
        await engine([]).advance(await context_at(cluster, phase))
