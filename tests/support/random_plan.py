"""Random decisions about an upgrade, by seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from hack.cluster import scenario as scenarios
from tests.support.api_faults import FAULTS
from tests.support.manager_restarts import Interruption
from tests.support.simulate import RepairableScenario
from tests.support.upgrade import BY_IMAGE, BY_VERSION
from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK
from upgrade_manager.api.phases import PHASE_VALUES, PhaseName

if TYPE_CHECKING:
    from hack.cluster.scenario import Scenario

SCENARIOS = ("one-node", "two-nodes", "three-nodes", "witness")
#: Upper bounds of the write at which a manager dies: the beginning, the first half, the whole upgrade.
_WRITES = (12, 50, 110)
#: Virtual seconds until a dead manager is replaced.
_GAPS = (0.0, 0.0, 3.0, 30.0)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The plan after one that did not succeed."""

    #: Whether it has the name of the deleted plan.
    same_name: bool
    #: Whether a failed plan is deleted only while this one runs.
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
    #: When the plan is deleted, or None.
    deleted: Instant | None
    #: When a second plan is created, or None; 0 phases: at the same time.
    rival: Instant | None
    following: Following

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
            *([f"then {self.following}"] if self.failing or self.deleted else []),
        ]
        return "; ".join(
            [
                f"seed {self.seed}: {self.scenario.name}, {self.spec}",
                *(f"API server: {name}" for name in self.faults),
                *interruptions,
                *lost,
                *([f"pauseNodes: {self.pauses}"] if self.pauses else []),
                *happens,
            ]
        )


def draw(seed: int) -> RandomPlan:
    """Make the decisions of a seed."""
    dice = Random(f"random run {seed}")
    plain = _scenario(dice)
    names = plain.nodes.names
    spec = {**dice.choice([BY_VERSION, BY_IMAGE]), "force": dice.random() < 0.2, "restoreVM": dice.random() < 0.5}
    if dice.random() < 0.5:
        spec["imagePreloadOption"] = {"concurrency": dice.choice([-1, 0, 1, 2, 9])}
    if dice.random() < 0.3:
        spec["nodeUpgradeOption"] = {"pauseNodes": _some(dice, (*names, "no-such-node"))}
    failing = dice.choice(_ways_to_fail(plain, spec, dice)) if dice.random() < 0.25 else None
    deleted = _instant(dice, len(PHASE_VALUES)) if dice.random() < 0.25 else None
    # A plan that fails may end before its rival exists.
    rival = _instant(dice, PHASE_VALUES.index("NodeUpgrading")) if failing is None and dice.random() < 0.25 else None
    faults = _bearable(dice.sample(sorted(FAULTS), dice.choice([0, 0, 1, 1, 2])))
    skip_disk_check = not _KUBELET_FAULTS.isdisjoint(faults)
    if failing is not None and failing.phase is PhaseName.INITIALIZE:
        faults, skip_disk_check = (), False
    if failing is not None:
        scenario = plain.changed(**failing.changes)
    else:
        scenario = plain.changed(**dice.choice([{}, {}, *_TRANSIENT_FAILURES]))
    return RandomPlan(
        seed=seed,
        scenario=RepairableScenario.model_validate(scenario.model_dump()),
        spec=spec,
        annotations=_NO_DISKS if skip_disk_check else {},
        faults=faults,
        interruptions=_interruptions(dice),
        pauses=tuple((dice.uniform(0, 20), tuple(_some(dice, names))) for _ in range(dice.choice([0, 0, 1, 2]))),
        failing=failing,
        deleted=deleted,
        rival=rival,
        following=_following(dice, failing),
    )


def _instant(dice: Random, phases: int) -> Instant:
    return Instant(phases=dice.randint(0, phases), seconds=dice.choice([0, dice.uniform(0, 0.5), dice.uniform(0, 10)]))


def _following(dice: Random, failing: Failing | None) -> Following:
    same_name = dice.random() < 0.4
    return Following(
        same_name=same_name,
        overlaps=not same_name and dice.random() < 0.5,
        spec={**dice.choice([BY_VERSION, BY_IMAGE]), **(failing.cure if failing else {})},
        annotations=failing.annotations if failing else {},
        pause=dice.choice([0, dice.uniform(0, 2), dice.uniform(0, 30)]),
    )


def _interruptions(dice: Random) -> tuple[Interruption, ...]:
    """Draw the crashes, and one lost response of the last manager."""
    deaths = [
        Interruption(
            die_at=dice.randint(1, dice.choice(_WRITES)),
            after=dice.random() < 0.5,
            gap=dice.uniform(0, dice.choice(_GAPS)),
        )
        for _ in range(dice.choice([0, 1, 1, 2, 3]))
    ]
    return (*deaths, Interruption(lose_at=dice.choice([0, dice.randint(1, dice.choice(_WRITES))])))


def _bearable(faults: list[str]) -> tuple[str, ...]:
    """Drop other faults when responses are lost: the cleanup would hardly ever succeed."""
    return (_LOST,) if _LOST in faults else tuple(faults)


def _ways_to_fail(scenario: Scenario, spec: dict[str, Any], dice: Random) -> list[Failing]:
    """Return the failures that this upgrade can have."""
    nodes = scenario.nodes.names
    node = dice.choice(nodes)
    full = {"nodes": {"disks": {node: {"used_gib": 250}}}}
    found = [
        Failing(what="a full disk", changes=full, phase=PhaseName.INITIALIZE, annotations=_NO_DISKS),
        _work("manifests", "", PhaseName.CLUSTER_UPGRADE),
        _work("image-cleanup", node, PhaseName.IMAGE_CLEANUP),
    ]
    steps = ["single-node-upgrade"] if len(nodes) == 1 else ["pre-drain", "post-drain"]
    found += [_work(step, node, PhaseName.NODE_UPGRADE) for step in steps]
    if "version" in spec:
        broken = {"image_import": {"attempts": 99}}
        found.append(Failing(what="a broken ISO", changes=broken, phase=PhaseName.ISO_DOWNLOAD, cure=BY_IMAGE))
    if not spec["force"]:
        old = {"release": {"min_upgradable_version": "v1.7.5"}}
        cure = {"force": True}
        found.append(Failing(what="too old a release", changes=old, phase=PhaseName.METADATA_POPULATE, cure=cure))
    if (spec.get("imagePreloadOption") or {}).get("concurrency", 0) >= 0:
        found.append(_work("prepare", node, PhaseName.IMAGE_PRELOAD))
    return found


def _work(work: str, node: str, phase: PhaseName) -> Failing:
    fault = {"work": work, "node": node}
    # The default backoff limit of a hundred takes hours.
    changes = {"faults": [fault], "upgrade_controller": {"backoff_limit": 1}}
    return Failing(what=f"{work} on {node or 'any node'}", changes=changes, phase=phase)


def _scenario(dice: Random) -> Scenario:
    scenario = scenarios.load(dice.choice(SCENARIOS))
    durations = {name: value * 10 ** dice.uniform(-1, 0.7) for name, value in scenario.durations.model_dump().items()}
    hosts = scenario.nodes.for_machines
    machines = [
        {
            "name": f"machine-{number}",
            "node": dice.choice(hosts),
            "migratable": dice.random() < 0.7,
            "run_strategy": dice.choice(["Always", "RerunOnFailure"]),
            "volume": dice.random() < 0.7,
            "failing_migrations": dice.choice([0, 0, 0, 1]),
        }
        for number in range(dice.randint(0, 6))
    ]
    return scenario.changed(
        durations=durations,
        vms={"count": 0, "machines": machines},
        jitter=dice.uniform(0, 0.5),
        replenishment_interval=dice.choice([None, "0", "600", "86400"]),
        addons=dice.choice([[], [_descheduler(enabled=True)], [_descheduler(enabled=False)]]),
    )


def _descheduler(*, enabled: bool) -> dict[str, Any]:
    return {"name": "descheduler", "namespace": "kube-system", "enabled": enabled}


def _some(dice: Random, names: tuple[str, ...]) -> list[str]:
    return dice.sample(names, dice.randint(1, len(names)))
