"""The program's command line."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hack import scenario
from hack.fast_time import FastTime, real_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EPILOG = """It writes the kubeconfig, prints one line that begins with "ready" and names the API server and the upgrade
repository's URL, and stays until SIGINT or SIGTERM. It contains no part of the upgrade manager."""
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The parsed options."""

    api: str
    scenario: str
    kubeconfig: Path
    #: Factor on all durations; 0 for --instant.
    scale: float
    seed: int
    #: The API server's port; 0 lets the system choose.
    port: int
    install_crds: bool
    #: Base URL of the webhooks behind a Service, by namespace/name; the embedded API server has no cluster network.
    services: Mapping[str, str]
    #: Run our commands as processes in the Jobs, those that are simulated otherwise included.
    real_toolkit: bool = False
    #: The time in which the cluster runs.
    time: FastTime = field(default_factory=real_time)
    #: Where the hosts' trees are kept; None for a temporary folder.
    hosts: Path | None = None


def parse(arguments: Sequence[str] | None) -> Options:
    """Parse the command line; exit with code 2 on an error."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.cluster", description="A simulated Harvester cluster in the foreground.", epilog=EPILOG
    )
    named = ", ".join(scenario.names())
    parser.add_argument("--api", choices=("embedded", "real"), default="embedded", help="which API server (embedded)")
    parser.add_argument("--scenario", default="three-nodes", metavar="NAME|FILE", help=f"{named}, or a YAML file")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        required=True,
        metavar="FILE",
        help="written; replaces an existing file",
    )
    speed = parser.add_mutually_exclusive_group()
    speed.add_argument("--time-scale", type=_factor, default=1.0, metavar="X", help="factor on all durations (1)")
    speed.add_argument("--instant", action="store_true", help="everything happens at once")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random sources (0)")
    _add_wiring_flags(parser)
    given = parser.parse_args(arguments)
    return Options(
        api=given.api,
        scenario=given.scenario,
        kubeconfig=given.kubeconfig,
        scale=0.0 if given.instant else given.time_scale,
        seed=given.seed,
        port=given.port,
        install_crds=given.install_crds,
        real_toolkit=given.toolkit == "real",
        hosts=given.hosts,
        time=FastTime.parse(*given.fast_time) if given.fast_time else real_time(),
        services=dict(given.service),
    )


def _add_wiring_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--port", type=_port, default=0, metavar="N", help="the API server's port (any free one)")
    add("--install-crds", action="store_true", help="install the UpgradePlan CRD too")
    add(
        "--toolkit",
        choices=("simulated", "real"),
        default="simulated",
        help="how our commands run in the Jobs: in the cluster's process, or as processes (simulated)",
    )
    help_text = "embedded API server: its clock runs so many times faster, and is right at that time"
    add("--fast-time", nargs=2, metavar=("RATE", "EQUAL_AT"), help=help_text)
    add("--hosts", type=Path, metavar="FOLDER", help="where these trees are kept (a temporary folder)")
    add(
        "--service",
        type=_service,
        action="append",
        default=[],
        metavar="NAMESPACE/NAME=URL",
        help="where the embedded API server reaches the webhooks of a Service",
    )


def _service(text: str) -> tuple[str, str]:
    name, equals, url = text.partition("=")
    if not equals or name.count("/") != 1:
        raise argparse.ArgumentTypeError(f"{text} is not of the form NAMESPACE/NAME=URL")
    return name, url


def _factor(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not greater than 0; use --instant for no waiting")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port")
    return value
