"""`python -m hack.bench`: measure the figures of docs/performance.md."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from hack.bench.catalogue import BENCHMARKS, load
from hack.control_plane.assets import AssetsError
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.runtime.logging import LogFormat, configure_logging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.bench.catalogue import Figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks; the exit status is 1 when a figure misses its target."""
    options = _parser().parse_args(arguments)
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        print(f"unknown benchmark: {', '.join(unknown)}; choose from {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    configure_logging(level="error", log_format=LogFormat.CONSOLE, stream=sys.stderr, now=SystemClock().now)
    figures = []
    for name in options.names or BENCHMARKS:
        for figure in _measured(name):
            figures.append(figure)
            if not options.json:
                print(figure.line(), flush=True)
    if options.json:
        print(json.dumps([figure.record() for figure in figures], indent=2))
    return 0 if all(figure.met for figure in figures) else 1


def _measured(name: str) -> list[Figure]:
    try:
        return load(name)()
    except AssetsError as error:
        print(f"{name}: skipped: {error}", file=sys.stderr)
        return []


def _parser() -> argparse.ArgumentParser:
    lines = "\n".join(f"  {name:<11} {text}" for name, (_, text) in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m hack.bench",
        description="Measure the figures of docs/performance.md.",
        epilog=f"benchmarks:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; default: all")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
