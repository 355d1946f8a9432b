"""Options of the commands for users."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from upgrade_manager.cli.toolkit_image_options import DEFAULT_TOOLKIT, add_toolkit_image_flags, toolkit_config
from upgrade_manager.cli.toolkit_options import object_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.api.toolkit_image import ToolkitConfig

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
SHELLS = ("bash", "zsh", "fish")
_KUBECONFIG = "kubeconfig file; else $KUBECONFIG, the service account, ~/.kube/config"
_CONTEXT = "context of the kubeconfig; else the current one"
_PLAN = "name of the plan; else the newest that has not ended, else the newest"
_CHECK = "check whether the manager is installed and works"
_CHECK_EPILOG = "exit status: 0 if no check failed, 1 after a failed check or without access, 2 for a usage error"
_PREFLIGHT = "check whether an upgrade may start"
_PREFLIGHT_EPILOG = (
    "exit status: 0 if the plan starts, 1 after a failed check or without access, 2 for a usage error, 3 if no check "
    "failed, but some could not be made"
)
_STATUS = "show how an upgrade proceeds"
_STATUS_EPILOG = (
    "exit status: 0, also of an upgrade that failed and after Ctrl-C in a watch; 1 without the plan or access to it, "
    "2 for a usage error; with --exit-code 1 for a plan that failed or never starts, 3 for one that is stalled, which "
    "ends a watch only with --fail-on-stall, and 124 after --timeout"
)
_REMEDIES = "print the commands that end what holds an upgrade up"
_REMEDIES_EPILOG = (
    "exit status: 0, also if nothing holds it up, 1 without the plan or access to it, 2 for a usage error"
)
_WAIT = "wait until an upgrade has ended, for scripts"
_WAIT_EPILOG = (
    "exit status: 0 if it succeeded, 1 if it failed, never starts, was deleted or cannot be read, 2 for a usage error, "
    "3 if it is stalled (--fail-on-stall), 124 after --timeout"
)
_PAUSE, _RESUME = "hold an upgrade, or nodes before they are drained", "let paused nodes go on"
_CONTINUE = "let a paused upgrade go on, or a node that holds"
_CONTINUE_EPILOG = "exit status: 0; 1 if nothing holds there, or without the plan or access, 2 for a usage error"
_PAUSED_NODES = "names of nodes; without them the upgrade holds before the next phase or node"
_HELD_NODE = "name of a node that pauseBefore holds; without it the plan goes on"
_PAUSES_EPILOG = (
    "exit status: 0, also if nothing had to be changed; 1 for an unknown plan or node, or without access, 2 for a usage"
    " error"
)
_RETRY = "let a plan that has failed go on where it failed"
_RETRY_EPILOG = (
    "exit status: 0 if the attempt is requested, 1 if the plan has not failed, or if the request is refused,"
    " 2 for a usage error"
)
_REPORT = "write a page about an upgrade"
_REPORT_EPILOG = "exit status: 0 if the page is written, 1 without the plan or access to it, 2 for a usage error"
_BUNDLE = "write all that is known of an upgrade into a file, without secrets"
_BUNDLE_EPILOG = "exit status: 0 if the file is written, 1 without the plan or access to it, 2 for a usage error"
_FROM: dict[str, Any] = {"metavar": "FILE", "dest": "bundle", "default": "", "help": "read a bundle, not the cluster"}
_STEPS = "print what an upgrade changes beside its components, without a cluster"
_STEPS_EPILOG = "exit status: 0, 1 for releases between which an upgrade is refused, 2 for a usage error"
_COMPLETION = "print the script that completes this command in a shell"
_COMPLETION_EPILOG = "bash: source <(upgrade-manager completion bash); fish: upgrade-manager completion fish | source"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Options of `upgrade-manager check`."""

    kubeconfig: str = ""
    context: str = ""
    #: `table` or `json`.
    output: str = "table"
    #: Seconds for which failed checks are repeated.
    wait: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightOptions:
    """Options of `upgrade-manager preflight`."""

    kubeconfig: str = ""
    context: str = ""
    #: File with a plan, "-" for standard input; "" for none.
    file: str = ""
    #: `table` or `json`.
    output: str = "table"
    #: True to skip the request to the ISO's server.
    skip_iso: bool = False
    #: List the releases instead of checking a plan.
    versions: bool = False
    toolkit: ToolkitConfig = DEFAULT_TOOLKIT


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of the commands about one plan."""

    kubeconfig: str = ""
    context: str = ""
    #: "" for the newest plan that has not ended, else the newest.
    plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions(PlanOptions):
    """Options of `upgrade-manager status`."""

    #: Show changes until the plan has ended.
    watch: bool = False
    #: `table`, `json` or `yaml`.
    output: str = "table"
    #: Return an exit status by the plan's state.
    exit_code: bool = False
    #: A bundle to read in place of the cluster; "" for none.
    bundle: str = ""
    #: Of a watch: seconds, None for no limit.
    timeout: float | None = None
    fail_on_stall: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediesOptions(PlanOptions):
    """Options of `upgrade-manager remedies`."""

    #: `text` or `json`.
    output: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOptions(PlanOptions):
    """Options of `upgrade-manager wait`."""

    #: Seconds; None for no limit.
    timeout: float | None = None
    fail_on_stall: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseOptions(PlanOptions):
    """Options of `upgrade-manager pause` and `resume`."""

    nodes: tuple[str, ...]
    #: False to resume them.
    pauses: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOptions(PlanOptions):
    """Options of `upgrade-manager pause` without nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueOptions(PlanOptions):
    """Options of `upgrade-manager continue`."""

    #: "" for the plan itself.
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions(PlanOptions):
    """Options of `upgrade-manager retry`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(PlanOptions):
    """Options of `upgrade-manager report`."""

    #: The file to write, "-" for standard output.
    output: str
    #: A bundle to read in place of the cluster; "" for none.
    bundle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleOptions(PlanOptions):
    """Options of `upgrade-manager bundle`."""

    #: The file to write.
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsOptions:
    """Options of `upgrade-manager steps`."""

    #: Versions of Harvester.
    current: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionOptions:
    """Options of `upgrade-manager completion`."""

    shell: str


UserOptions: TypeAlias = "CheckOptions | PlanOptions | PreflightOptions | StepsOptions | CompletionOptions"


def seconds(text: str) -> float:
    """Parse a duration as Go and kubectl write it, such as 6h30m."""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90s, 45m or 6h30m")
    hours, minutes, whole = (int(part or 0) for part in match.groups())
    return 3600.0 * hours + 60.0 * minutes + whole


def add_access_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select the cluster, named as those of kubectl."""
    parser.add_argument("--kubeconfig", metavar="FILE", default="", help=_KUBECONFIG)
    parser.add_argument("--context", metavar="NAME", default="", help=_CONTEXT)


def add_user_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add a parser for each command."""
    for name, (purpose, epilog, add_arguments) in _COMMANDS.items():
        parser = commands.add_parser(name, help=purpose, epilog=epilog, allow_abbrev=False)
        add_arguments(parser)
        if name not in _OFFLINE:
            add_access_flags(parser)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table", help="format")
    parser.add_argument(
        "--wait", metavar="DURATION", type=seconds, default="0s", help="repeat failed checks for so long, such as 2m"
    )


def _add_preflight(parser: argparse.ArgumentParser) -> None:
    subject = parser.add_mutually_exclusive_group()
    subject.add_argument(
        "-f", "--filename", metavar="FILE", default="", help="an UpgradePlan, - for standard input; else the cluster"
    )
    subject.add_argument("--versions", action="store_true", help="list the releases, and what each needs")
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table", help="format")
    parser.add_argument(
        "--skip-iso", action="store_true", help="skip the request to the ISO's server, which only the cluster reaches"
    )
    add_toolkit_image_flags(parser)


def _add_status(parser: argparse.ArgumentParser) -> None:
    _add_plan(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="show changes until the plan has ended, or Ctrl-C")
    parser.add_argument("-o", "--output", choices=["table", "json", "yaml"], default="table", help="format")
    parser.add_argument("--exit-code", action="store_true", help="an exit status by the state of the plan")
    parser.add_argument("--from", **_FROM)
    _add_end(parser)


def _add_remedies(parser: argparse.ArgumentParser) -> None:
    _add_plan(parser)
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="format")


def _add_wait(parser: argparse.ArgumentParser) -> None:
    _add_plan(parser)
    _add_end(parser)


def _add_end(parser: argparse.ArgumentParser) -> None:
    """Add the flags that end a watch before the upgrade has ended."""
    parser.add_argument("--timeout", metavar="DURATION", type=seconds, help="such as 90m or 6h30m; else no limit")
    parser.add_argument("--fail-on-stall", action="store_true", help="end when something holds the upgrade up")


def _add_nodes(parser: argparse.ArgumentParser, *, nargs: str, text: str = "names of nodes") -> None:
    _add_retry(parser)
    parser.add_argument("node" if nargs == "?" else "nodes", metavar="NODE", nargs=nargs, type=object_name, help=text)


def _add_retry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", type=object_name, help="name of the plan")


def _add_report(parser: argparse.ArgumentParser) -> None:
    _add_plan(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the HTML file to write, - for standard output"
    )
    parser.add_argument("--from", **_FROM)


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    _add_plan(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write, such as bundle.tgz")


def _add_steps(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--from", metavar="VERSION", dest="current", required=True, help="the release that runs: v1.7.1")
    add("--to", metavar="VERSION", dest="target", required=True, help="the release to upgrade to: v1.8.0")


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", nargs="?", type=object_name, help=_PLAN)


#: By name, in the order of --help: purpose, epilog and arguments.
_COMMANDS: dict[str, tuple[str, str, Callable[[argparse.ArgumentParser], None]]] = {
    "check": (_CHECK, _CHECK_EPILOG, _add_check),
    "preflight": (_PREFLIGHT, _PREFLIGHT_EPILOG, _add_preflight),
    "status": (_STATUS, _STATUS_EPILOG, _add_status),
    "remedies": (_REMEDIES, _REMEDIES_EPILOG, _add_remedies),
    "wait": (_WAIT, _WAIT_EPILOG, _add_wait),
    "pause": (_PAUSE, _PAUSES_EPILOG, partial(_add_nodes, nargs="*", text=_PAUSED_NODES)),
    "continue": (_CONTINUE, _CONTINUE_EPILOG, partial(_add_nodes, nargs="?", text=_HELD_NODE)),
    "resume": (_RESUME, _PAUSES_EPILOG, partial(_add_nodes, nargs="+")),
    "retry": (_RETRY, _RETRY_EPILOG, _add_retry),
    "report": (_REPORT, _REPORT_EPILOG, _add_report),
    "bundle": (_BUNDLE, _BUNDLE_EPILOG, _add_bundle),
    "steps": (_STEPS, _STEPS_EPILOG, _add_steps),
    "completion": (_COMPLETION, _COMPLETION_EPILOG, _add_completion),
}
#: Commands without a cluster.
_OFFLINE = {"steps", "completion"}


def user_options(flags: argparse.Namespace, *, parser: argparse.ArgumentParser) -> UserOptions | None:
    """Return the options of such a command; None for another one."""
    if flags.command == "status" and _ends(flags) and not (flags.watch and flags.exit_code):
        parser.error("--timeout and --fail-on-stall need --watch and --exit-code")
    if flags.command == "status" and flags.watch and flags.bundle:
        parser.error("--from shows a bundle, which does not change: leave out --watch")
    read = _READERS.get(flags.command)
    if read is not None:
        return read(flags)
    if flags.command == "preflight":
        toolkit = toolkit_config(flags, parser=parser)
        given: dict[str, Any] = {**_access(flags), "file": flags.filename, "output": flags.output}
        return PreflightOptions(**given, skip_iso=flags.skip_iso, versions=flags.versions, toolkit=toolkit)
    return None


def _access(flags: argparse.Namespace) -> dict[str, str]:
    return {"kubeconfig": flags.kubeconfig, "context": getattr(flags, "context", "")}


def _plan(flags: argparse.Namespace) -> dict[str, str]:
    return {**_access(flags), "plan": flags.plan or ""}


def _status_options(flags: argparse.Namespace) -> StatusOptions:
    given: dict[str, Any] = {**_plan(flags), "watch": flags.watch, "output": flags.output, "exit_code": flags.exit_code}
    return StatusOptions(**given, bundle=flags.bundle, timeout=flags.timeout, fail_on_stall=flags.fail_on_stall)


def _ends(flags: argparse.Namespace) -> bool:
    return flags.fail_on_stall or flags.timeout is not None


def _remedies_options(flags: argparse.Namespace) -> RemediesOptions:
    return RemediesOptions(**_plan(flags), output=flags.output)


def _wait_options(flags: argparse.Namespace) -> WaitOptions:
    return WaitOptions(**_plan(flags), timeout=flags.timeout, fail_on_stall=flags.fail_on_stall)


def _pause_options(flags: argparse.Namespace) -> PlanOptions:
    nodes = tuple(dict.fromkeys(flags.nodes))
    if not nodes:
        return HoldOptions(**_plan(flags))
    return PauseOptions(**_plan(flags), nodes=nodes, pauses=flags.command == "pause")


def _report_options(flags: argparse.Namespace) -> ReportOptions:
    return ReportOptions(**_plan(flags), output=flags.output, bundle=flags.bundle)


#: Reads the options of a command from its flags.
_READERS: dict[str, Callable[[argparse.Namespace], UserOptions]] = {
    "check": lambda flags: CheckOptions(**_access(flags), output=flags.output, wait=flags.wait),
    "status": _status_options,
    "remedies": _remedies_options,
    "wait": _wait_options,
    "pause": _pause_options,
    "continue": lambda flags: ContinueOptions(**_plan(flags), node=flags.node or ""),
    "resume": _pause_options,
    "retry": lambda flags: RetryOptions(**_plan(flags)),
    "report": _report_options,
    "bundle": lambda flags: BundleOptions(**_plan(flags), output=flags.output),
    "steps": lambda flags: StepsOptions(current=flags.current, target=flags.target),
    "completion": lambda flags: CompletionOptions(shell=flags.shell),
}
