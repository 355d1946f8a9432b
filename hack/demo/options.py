"""The demo's command line."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hack.demo.breaks import BREAKS
from hack.demo.failures import FAILURES
from hack.demo.stalls import STALLS
from hack.fast_time import FastTime, real_time

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG = "exit status: 0 when the upgrade has succeeded, 1 when not, 130 after Ctrl-C, 141 when its output is closed"


#: Seconds of the cluster in a real one: what the manager waits for by its own clock takes that much less.
RATE = 4.0
#: The same while the upgrade is broken: blockers appear after minutes.
STALL_RATE = 12.0
#: The factor on the scenario's durations with which an upgrade takes half a minute.
TIME_SCALE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, parsed."""

    scenario: str
    api: str
    #: A factor on the scenario's durations.
    time_scale: float
    instant: bool
    #: Empty for a plan that names a Version.
    image: str
    #: "simulated" or "real".
    toolkit: str
    plan_file: Path | None
    #: Names in BREAKS, STALLS and FAILURES.
    breaks: tuple[str, ...]
    #: The user runs the remedies of STALLS, and retries after FAILURES.
    hold: bool
    keep: bool
    #: Seconds in which the upgrade has to end.
    timeout: float
    plain: bool
    #: The time of cluster and manager.
    time: FastTime = field(default_factory=real_time)

    @property
    def stalls(self) -> tuple[str, ...]:
        """The breaks of the running upgrade."""
        return tuple(name for name in self.breaks if name in STALLS)

    @property
    def disturbances(self) -> tuple[str, ...]:
        """The breaks of the running upgrade, and its failures."""
        return tuple(name for name in self.breaks if name not in BREAKS)


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Parse the command line, or exit with a message."""
    return Options(**vars(command_line().parse_args(arguments)))


def accelerated(options: Options) -> Options:
    """Return the options with a time that is never later than the real one until the time limit."""
    if options.api == "real":
        # A real API server's clock cannot run faster.
        return options
    equal_at = datetime.now(UTC) + timedelta(seconds=options.timeout)
    return replace(options, time=FastTime(rate=STALL_RATE if options.stalls else RATE, equal_at=equal_at))


def command_line() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.demo",
        description="Upgrade a simulated Harvester cluster and show the progress.",
        epilog=_EPILOG,
    )
    parser.add_argument("--scenario", default="three-nodes", help="name or file of a scenario (default: %(default)s)")
    parser.add_argument(
        "--api",
        choices=("embedded", "real"),
        default="embedded",
        help="API server (default: %(default)s); `make real-kube` builds the real one",
    )
    _add_pace_flags(parser)
    parser.add_argument(
        "--toolkit",
        choices=("simulated", "real"),
        default="simulated",
        help="how this project's commands run in the Jobs: in the cluster's process, or as processes that do all work",
    )
    _add_plan_flags(parser)
    parser.add_argument(
        "--keep", action="store_true", help="keep everything running until Ctrl-C after the upgrade has ended"
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=900.0,
        metavar="SECONDS",
        help="time limit (default: %(default)s)",
    )
    parser.add_argument("--plain", action="store_true", help="print lines of text on a terminal too")
    return parser


def _add_pace_flags(parser: argparse.ArgumentParser) -> None:
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument(
        "--time-scale",
        type=_positive,
        default=TIME_SCALE,
        metavar="X",
        help="factor on the scenario's durations (default: %(default)s)",
    )
    pace.add_argument("--instant", action="store_true", help="run without the scenario's durations")


def _add_plan_flags(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--image", nargs="?", const="harvester-v1.8.0", default="", metavar="NAME",
                      help="upgrade from a VirtualMachineImage (default: %(const)s) instead of a Version")  # fmt: skip
    what.add_argument("--plan-file", type=Path, metavar="FILE", help="create the UpgradePlan in this file")
    parser.add_argument(
        "--break",
        dest="breaks",
        type=_breaks,
        default=(),
        metavar="NAME[,NAME…]",
        help=f"break the cluster first, and mend it when the webhook has refused the plan: {', '.join(BREAKS)}; "
        f"or break the running upgrade, and mend it once the plan names the blocker: {', '.join(STALLS)}; "
        f"or let it fail, and retry it: {', '.join(FAILURES)}",
    )
    parser.add_argument("--hold", action="store_true", help="wait for you to mend the running upgrade, or to retry it")


def _breaks(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    known = [*BREAKS, *STALLS, *FAILURES]
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"unknown name {unknown[0]!r}; names are {', '.join(known)}")
    return names


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number
