"""What the demo can be told on its command line."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG = "exit status: 0 when the upgrade has succeeded, 1 when not, 130 after Ctrl-C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, parsed."""

    scenario: str
    api: str
    #: None leaves the scenario's own durations as they are.
    time_scale: float | None
    instant: bool
    #: Empty for a plan that names a Version.
    image: str
    plan_file: Path | None
    keep: bool
    #: Seconds after which the upgrade is given up.
    timeout: float
    plain: bool


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line; ends the program with a message where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.demo", description="Upgrade a simulated Harvester cluster and watch it.", epilog=_EPILOG
    )
    parser.add_argument("--scenario", default="three-nodes", help="a scenario's name or file (default: %(default)s)")
    parser.add_argument(
        "--api",
        choices=("embedded", "real"),
        default="embedded",
        help="the API server to run on (%(default)s); for real see `make real-kube`",
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--time-scale", type=_positive, metavar="X", help="X times the scenario's durations")
    pace.add_argument("--instant", action="store_true", help="whatever the cluster does takes no time")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--image", nargs="?", const="harvester-v1.8.0", default="", metavar="NAME",
                      help="upgrade from a VirtualMachineImage (default: %(const)s), not from a Version")  # fmt: skip
    what.add_argument("--plan-file", type=Path, metavar="FILE", help="apply this UpgradePlan instead of the demo's own")
    parser.add_argument(
        "--keep", action="store_true", help="when the upgrade has ended, leave everything running until Ctrl-C"
    )
    parser.add_argument(
        "--timeout", type=_positive, default=900.0, metavar="SECONDS", help="give up after this time (%(default)s)"
    )
    parser.add_argument("--plain", action="store_true", help="lines of text, on a terminal too")
    return Options(**vars(parser.parse_args(arguments)))


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number
