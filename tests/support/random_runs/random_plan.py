"""Random decisions about an upgrade, by seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from hack import scenario as scenarios
from tests.support.cluster.simulate import RepairableScenario
from tests.support.managers.manager_restarts import Interruption
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION
from tests.support.random_runs.interference import ACTS, IMAGE_DELETED, NEWER, OFF_EARLY, RESTARTS, Interference
from tests.support.random_runs.random_control import Control, draw_control
from tests.support.random_runs.refusals import REASONS
from tests.support.server.api_faults import FAULTS
from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK
from upgrade_manager.api.phases import PHASE_VALUES, PhaseName

if TYPE_CHECKING:
    from hack.scenario import Scenario

_SCENARIOS = ("one-node", "two-nodes", "three-nodes", "witness")
#: Virtual seconds that the fastest upgrade takes, at least.
_FAST_UPGRADE = 2.0
#: Upper bounds of the write at which a manager dies: the beginning, the first half, the whole upgrade.
_WRITES = (12, 50, 110)
#: Virtual seconds until a dead manager is replaced.
_GAPS = (0.0, 0.0, 3.0, 30.0)
#: Phase values recorded when the node upgrade has begun.
NODE_UPGRADING = PHASE_VALUES.index("NodeUpgrading") + 1
#: Virtual seconds in which Rancher would upgrade several nodes that are not held.
_LONG_PAUSE = 300.0
#: Seconds by which the managers' clocks are ahead.
_SKEWS = (0.0, 0.0, 0.0, 90.0, -90.0, 3.0, -3600.0)
_LOST = "answers lost after the write"
#: With these faults preflight may fail because a kubelet seems dead for a minute.
_KUBELET_FAULTS = {"429", "500", "503", "resets"}
_NO_DISKS = {ANNOTATION_SKIP_DISK_CHECK: "true"}
#: Failures that an upgrade survives.
_TRANSIENT_FAILURES: tuple[dict[str, Any], ...] = (
    {"image_import": {"attempts": 1}},
    {"repository": {"failing_requests": 4}},
    {"nodes": {"disks": {"node-0": {"unreachable": 20}}}},
    {"faults": [{"work": "restore-vm"}]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """Some virtual seconds after a plan has recorded so many phase values."""

    phases: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A cause of failure."""

    what: str
    #: The scenario's changes.
    changes: dict[str, Any]
    phase: PhaseName
    #: Spec changes of the plan that succeeds after the repair.
    cure: dict[str, Any] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def is_mended(self) -> bool:
        """True if the repair alone lets another attempt of the same plan succeed."""
        return not self.cure and not self.annotations


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The plan after one that did not succeed."""

    #: True if it has the name of the deleted plan.
    same_name: bool
    #: True if a failed plan is deleted only while this one runs.
    overlaps: bool
    spec: dict[str, Any]
    annotations: dict[str, str]
    #: Virtual seconds until its creation.
    pause: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomPlan:
    """The random decisions of one run."""

    seed: int
    scenario: RepairableScenario
    spec: dict[str, Any]
    #: Of all plans.
    annotations: dict[str, str]
    #: Names of faults of the API server.
    faults: tuple[str, ...]
    #: Of each manager.
    interruptions: tuple[Interruption, ...]
    #: Seconds, and pauseNodes from then on; it is empty in the end.
    pauses: tuple[tuple[float, tuple[str, ...]], ...]
    failing: Failing | None
    #: The time at which the plan is deleted, or None.
    deleted: Instant | None
    #: The time at which a second plan is created, or None; 0 phases: at the same time.
    rival: Instant | None
    following: Following
    #: Acts of others on the cluster meanwhile.
    interference: tuple[Interference, ...]
    #: Seconds by which the managers' clocks are ahead of the API server's.
    skew: float
    control: Control

    @property
    def resumes(self) -> bool:
        """True if the plan that fails gets another attempt after the repair; else another plan follows."""
        # Drawn apart, so that the other decisions of a seed stay as they were. No attempt goes on without the image.
        has_image = all(act.what != IMAGE_DELETED for act in self.interference)
        has_attempt = Random(f"attempts of random run {self.seed}").random() < 0.6
        return self.failing is not None and self.failing.is_mended and has_image and has_attempt

    def __str__(self) -> str:
        """Describe it in one line."""
        interruptions = [
            f"dies {'after' if f.after else 'before'} write {f.die_at}" for f in self.interruptions if f.die_at
        ]
        lost = [f"response {f.lose_at} of the last manager lost" for f in self.interruptions if f.lose_at]
        happens = [
            *([f"fails for {self.failing.what}"] if self.failing else []),
            *([f"deleted after {self.deleted}"] if self.deleted else []),
            *([f"rival after {self.rival}"] if self.rival else []),
            *(["then its next attempt"] if self.resumes else []),
            *([f"then {self.following}"] if (self.failing or self.deleted) and not self.resumes else []),
        ]
        return "; ".join(
            [
                f"seed {self.seed}: {self.scenario.name}, {self.spec}",
                *(f"API server: {name}" for name in self.faults),
                *map(str, (*self.interference, *self.control.holders)),
                *interruptions,
                *lost,
                *([f"clocks wrong by {self.skew:.0f} s"] if self.skew else []),
                *([f"pauseNodes: {self.pauses}"] if self.pauses else []),
                *([f"paused: {self.control.pauses}"] if self.control.pauses else []),
                *happens,
            ]
        )


def draw(seed: int) -> RandomPlan:
    """Make the decisions of a seed."""
    random = Random(f"random run {seed}")
    plain = _scenario(random)
    names = plain.nodes.names
    spec = {**random.choice([BY_VERSION, BY_IMAGE]), "force": random.random() < 0.2, "restoreVM": random.random() < 0.5}
    if random.random() < 0.5:
        spec["imagePreloadOption"] = {"concurrency": random.choice([-1, 0, 1, 2, 9])}
    if random.random() < 0.3:
        spec["nodeUpgradeOption"] = {"pauseNodes": _some(random, (*names, "no-such-node"))}
    failing = random.choice(_ways_to_fail(plain, spec, random)) if random.random() < 0.25 else None
    deleted = _instant(random, len(PHASE_VALUES)) if random.random() < 0.25 else None
    # A plan that fails may end before its rival exists.
    rival = (
        _instant(random, PHASE_VALUES.index("NodeUpgrading")) if failing is None and random.random() < 0.25 else None
    )
    faults = _bearable(random.sample(sorted(FAULTS), random.choice([0, 0, 1, 1, 2])))
    skip_disk_check = not _KUBELET_FAULTS.isdisjoint(faults)
    if failing is not None and failing.phase is PhaseName.INITIALIZE:
        faults, skip_disk_check = (), False
    changes = random.choice([{}, {}, *_TRANSIENT_FAILURES]) if failing is None else failing.changes
    scenario = plain.changed(**changes)
    control = draw_control(seed, names)
    return RandomPlan(
        seed=seed,
        control=control,
        scenario=RepairableScenario.model_validate(scenario.model_dump()),
        spec=control.of(spec),
        annotations=_NO_DISKS if skip_disk_check else {},
        faults=faults,
        interruptions=_interruptions(random),
        pauses=tuple((random.uniform(0, 20), tuple(_some(random, names))) for _ in range(random.choice([0, 0, 1, 2]))),
        failing=failing,
        deleted=deleted,
        rival=rival,
        following=_following(random, failing, [deleted, *([rival] if rival else [])] if deleted else []),
        interference=_interference(random, names, is_counted=failing is not None),
        # Drawn apart, so that the other decisions of a seed stay as they were.
        skew=Random(f"clocks of random run {seed}").choice(_SKEWS),
    )


def _interference(random: Random, nodes: tuple[str, ...], *, is_counted: bool) -> tuple[Interference, ...]:
    """Draw what others do; with a seed's other decisions unchanged, because it is drawn last.

    Nothing restarts nodes if the boots after a failure are counted.
    """
    counted = {RESTARTS, OFF_EARLY} if is_counted else set()
    older = sorted(ACTS.keys() - NEWER.keys() - counted)
    drawn = [_act(random, older, nodes) for _ in range(random.choice([0, 1, 1, 2, 3, 4]))]
    newer = sorted(NEWER.keys() - counted)
    return (*drawn, *(_act(random, newer, nodes) for _ in range(random.choice([0, 0, 1, 1, 2]))))


def _act(random: Random, acts: list[str], nodes: tuple[str, ...]) -> Interference:
    return Interference(
        what=random.choice(acts),
        phases=random.choice([random.randint(1, len(PHASE_VALUES)), NODE_UPGRADING]),
        seconds=random.uniform(0, 15),
        lasts=random.uniform(0, 20),
        node=random.choice(nodes),
        status=random.choice(list(REASONS)),
    )


def _instant(random: Random, phases: int) -> Instant:
    return Instant(
        phases=random.randint(0, phases), seconds=random.choice([0, random.uniform(0, 0.5), random.uniform(0, 10)])
    )


def _following(random: Random, failing: Failing | None, deleted_after: list[Instant]) -> Following:
    same_name = random.random() < 0.4
    # Where all nodes may run the release, another plan for it is refused without force. A deletion may come late: an
    # API server that refuses requests delays it from the end of the phase before until a single node is upgraded.
    is_late = any(one.phases >= NODE_UPGRADING - 1 or one.seconds > _FAST_UPGRADE for one in deleted_after)
    force = {"force": True} if is_late else {}
    return Following(
        same_name=same_name,
        overlaps=not same_name and random.random() < 0.5,
        spec={**random.choice([BY_VERSION, BY_IMAGE]), **(failing.cure if failing else {}), **force},
        annotations=failing.annotations if failing else {},
        pause=random.choice([0, random.uniform(0, 2), random.uniform(0, 30), _LONG_PAUSE]),
    )


def _interruptions(random: Random) -> tuple[Interruption, ...]:
    """Draw the crashes, and one lost response of the last manager."""
    deaths = [
        Interruption(
            die_at=random.randint(1, random.choice(_WRITES)),
            after=random.random() < 0.5,
            gap=random.uniform(0, random.choice(_GAPS)),
        )
        for _ in range(random.choice([0, 1, 1, 2, 3]))
    ]
    return (*deaths, Interruption(lose_at=random.choice([0, random.randint(1, random.choice(_WRITES))])))


def _bearable(faults: list[str]) -> tuple[str, ...]:
    """Drop other faults when responses are lost: the cleanup would hardly ever succeed."""
    return (_LOST,) if _LOST in faults else tuple(faults)


def _ways_to_fail(scenario: Scenario, spec: dict[str, Any], random: Random) -> list[Failing]:
    """Return the failures that this upgrade can have."""
    nodes = scenario.nodes.names
    node = random.choice(nodes)
    full = {"nodes": {"disks": {node: {"used_gib": 250}}}}
    found = [
        Failing(what="a full disk", changes=full, phase=PhaseName.INITIALIZE, annotations=_NO_DISKS),
        _work("manifests", "", PhaseName.CLUSTER_UPGRADE),
    ]
    steps = ["single-node-upgrade"] if len(nodes) == 1 else ["pre-drain", "post-drain"]
    found += [_work(step, node, PhaseName.NODE_UPGRADE) for step in steps]
    if "version" in spec:
        broken = {"image_import": {"attempts": 99}}
        found.append(Failing(what="a broken ISO", changes=broken, phase=PhaseName.ISO_DOWNLOAD, cure=BY_IMAGE))
    if not spec["force"]:
        old = {"release": {"min_upgradable_version": "v1.7.5"}}
        # The Version states it, too.
        phase = PhaseName.INITIALIZE if "version" in spec else PhaseName.METADATA_POPULATE
        found.append(Failing(what="too old a release", changes=old, phase=phase, cure={"force": True}))
    if (spec.get("imagePreloadOption") or {}).get("concurrency", 0) >= 0:
        found.append(_work("prepare", node, PhaseName.IMAGE_PRELOAD))
    return found


def _work(work: str, node: str, phase: PhaseName) -> Failing:
    fault = {"work": work, "node": node}
    # The default backoff limit of a hundred takes hours.
    changes = {"faults": [fault], "upgrade_controller": {"backoff_limit": 1}}
    return Failing(what=f"{work} on {node or 'any node'}", changes=changes, phase=phase)


def _scenario(random: Random) -> Scenario:
    scenario = scenarios.load(random.choice(_SCENARIOS))
    durations = {name: value * 10 ** random.uniform(-1, 0.7) for name, value in scenario.durations.model_dump().items()}
    hosts = scenario.nodes.for_machines
    machines = [
        {
            "name": f"machine-{number}",
            "node": random.choice(hosts),
            "migratable": random.random() < 0.7,
            "run_strategy": random.choice(["Always", "RerunOnFailure"]),
            "volume": random.random() < 0.7,
            "failing_migrations": random.choice([0, 0, 0, 1]),
        }
        for number in range(random.randint(0, 6))
    ]
    return scenario.changed(
        durations=durations,
        vms={"count": 0, "machines": machines},
        jitter=random.uniform(0, 0.5),
        replenishment_interval=random.choice([None, "0", "600", "86400"]),
        addons=random.choice([[], [_descheduler(enabled=True)], [_descheduler(enabled=False)]]),
    )


def _descheduler(*, enabled: bool) -> dict[str, Any]:
    return {"name": "descheduler", "namespace": "kube-system", "enabled": enabled}


def _some(random: Random, names: tuple[str, ...]) -> list[str]:
    return random.sample(names, random.randint(1, len(names)))
