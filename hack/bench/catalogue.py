"""All benchmarks by name, and the figures that they return."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

#: By name, in the order of docs/performance.md: the function, imported when it is run, and what it measures.
BENCHMARKS = {
    "upgrade": ("upgrade:measure", "wall time of an upgrade in process"),
    "requests": ("upgrade:measure_requests", "requests of a three-node upgrade, and for each further node"),
    "reaction": ("reaction:measure", "from the event of an awaited object to the manager's next write"),
    "changes": ("phase_changes:measure", "from the object that a phase waits for to the next phase's first write"),
    "idle": ("upgrade:measure_idle", "requests of a manager with a finished plan"),
    "process": ("process:measure", "start, restart after SIGKILL, and memory of the manager as a process"),
    "imports": ("imports:measure", "what the manager and the webhook load: processor time and memory, by package"),
    "status": ("status:measure", "`upgrade-manager status` as a process, from its start to its end"),
    "informer": ("informer:measure", "events per second into an informer"),
    "real": ("real:measure", "upgrades on a real API server: requests, and requests for each node"),
    "scale": ("scale:measure", "1,000 nodes, 5,000 VMs and 10,000 volumes on a real API server; takes minutes"),
    "plansize": ("plan_size:measure", "the plan of 5,000 nodes: its object, its writes, and where etcd refuses it"),
    "webhook": ("webhook:measure", "reviews of plans on a cluster of that size; takes minutes"),
    "attack": ("attack:measure", "attacks of clients without credentials on the manager as a process; takes minutes"),
    "scrape": ("scrape:measure", "a scrape of a manager that upgrades 1,000 nodes: time and size"),
    "toolkit": ("toolkit:measure", "node prepare on large archives, relative to curl and zstd; import time"),
    "peers": (
        "peers.speed:measure",
        "the same controller with this and other libraries, on both API servers; takes minutes",
    ),
    "peers-faults": ("peers.faults:measure", "what each of these controllers does under faults; takes 12 minutes"),
    "demo": ("process:measure_demo", "`make demo` on a fresh clone, set-up included"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured number and its target."""

    name: str
    value: float
    #: Empty for counts and ratios.
    unit: str
    target: float
    #: False for a lower bound, such as a throughput.
    at_most: bool = True

    @property
    def met(self) -> bool:
        """True when the value meets the target."""
        return self.value <= self.target if self.at_most else self.value >= self.target

    def line(self) -> str:
        """Format the figure for people: name, value, unit, target and verdict."""
        value = f"{number(self.value)} {self.unit}".rstrip()
        target = f"{'≤' if self.at_most else '≥'} {number(self.target)} {self.unit}".rstrip()
        return f"{self.name:<58} {value:>18}   {target:<18} {'ok' if self.met else 'MISS'}"

    def record(self) -> dict[str, Any]:
        """Return the figure for programs."""
        return {**asdict(self), "met": self.met}


def number(value: float) -> str:
    """Format a number with three significant digits, and large ones with separators."""
    if value == 0 or value >= 100:  # noqa: PLR2004  # three digits
        return f"{value:,.0f}"
    return f"{value:.3g}"


def load(name: str) -> Callable[[], list[Figure]]:
    """Import a benchmark; it runs when called."""
    module, function = BENCHMARKS[name][0].split(":")
    return cast("Callable[[], list[Figure]]", getattr(import_module(f"hack.bench.{module}"), function))
