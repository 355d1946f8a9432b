"""All benchmarks by name, loaded only when they are run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.bench.figure import Figure

#: The module of each and what it measures, in the order of docs/performance.md. Each has a function `measure`.
BENCHMARKS = {
    "upgrade": (
        "hack.bench.upgrade",
        "an upgrade in process: wall time, and its requests replayed without the manager",
    ),
    "requests": ("hack.bench.requests", "requests of a three-node upgrade, and what each further node costs"),
    "reaction": ("hack.bench.reaction", "from the event of an awaited object to the write that it causes"),
    "changes": ("hack.bench.changes", "from the object that a phase waits for to the next phase's first write"),
    "idle": ("hack.bench.idle", "what a manager with a finished plan asks of the API server"),
    "process": ("hack.bench.process", "start, restart after SIGKILL, and memory of the manager as a process"),
    "informer": ("hack.bench.ingest", "how many events a second an informer takes in"),
    "lists": ("hack.bench.lists", "ten thousand objects of a real API server into an informer, streamed and listed"),
    "real": ("hack.bench.real", "three-node upgrades on a real API server: overhead, requests, what a node costs"),
    "realchanges": ("hack.bench.real_changes", "what `changes` measures, on a real API server and by its own clock"),
    "scale": ("hack.bench.scale", "1,000 nodes, 5,000 VMs and 10,000 volumes on a real API server; takes minutes"),
    "demo": ("hack.bench.demo", "`make demo` on a fresh clone, set-up included"),
}


def load(name: str) -> Callable[[], list[Figure]]:
    """Import a benchmark; it runs when called."""
    module, _ = BENCHMARKS[name]
    return cast("Callable[[], list[Figure]]", import_module(module).measure)
