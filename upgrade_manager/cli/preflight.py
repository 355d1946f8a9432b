"""The command `upgrade-manager preflight`: all checks of a new plan, run by hand before its creation.

user_commands.py starts it. webhook/preflight has the checks, preflight_view.py their output.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upgrade_manager import __version__
from upgrade_manager.api.annotations import PlanAnnotations
from upgrade_manager.api.keys import API_VERSION, KIND
from upgrade_manager.api.migration_failure import summary
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.api.toolkit_image import ToolkitChoice, decide
from upgrade_manager.cli import preflight_view, version_list
from upgrade_manager.cli.check_table import terminal_width
from upgrade_manager.cli.options import USAGE
from upgrade_manager.cli.preflight_view import PreflightView
from upgrade_manager.cli.session import CommandError, connected, print_message, run_command
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.errors import Forbidden, KubeError
from upgrade_manager.preflight.certificate_probe import TlsProbe
from upgrade_manager.preflight.kubelets import ProxiedKubelets
from webhook.preflight.gate import Surroundings, check
from webhook.preflight.harvester import problem as harvester_problem
from webhook.preflight.iso_server import HttpIsoServer
from webhook.preflight.permission import ROLE, Permissions, bind_commands
from webhook.preflight.versions import read_releases

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from upgrade_manager.api.toolkit_image import ToolkitConfig
    from upgrade_manager.cli.session import Session
    from upgrade_manager.cli.user_options import PreflightOptions
    from upgrade_manager.kube.objects import Object
    from webhook.preflight.iso_server import IsoServer

STANDARD_INPUT = "-"
#: Exit statuses: a check has failed; none has, but some could not be made.
FAILED, UNPROVEN = 1, 3


def preflight(options: PreflightOptions) -> int:
    """Check the cluster and the plan, print the results, and return the exit status."""

    def work() -> Coroutine[Any, Any, int]:
        # Before the event loop, so that Ctrl-C ends a wait for standard input.
        plan = read_plan(options.file) if options.file else {}
        return _preflight(plan, options)

    return run_command("preflight", work)


async def _preflight(plan: Object, options: PreflightOptions) -> int:
    async with (
        connected(command="preflight", kubeconfig=options.kubeconfig, context=options.context) as session,
        HttpIsoServer(user_agent=f"upgrade-manager-preflight/{__version__}") as iso,
    ):
        # Reports a server that does not respond, or refuses the user.
        await session.read(session.client.raw("GET", "/version"))
        if options.versions:
            return await _versions(session, iso, options)
        return await _check(session, iso, plan, options)


async def _check(session: Session, iso: IsoServer, plan: Object, options: PreflightOptions) -> int:
    kubelets = ProxiedKubelets(session.client)
    around = Surroundings(
        certificates=TlsProbe(), kubelets=kubelets, iso=iso, clock=SystemClock(), on_wait=print_message
    )
    report = await check(plan, session.client, options.toolkit, around, skip_iso=options.skip_iso)
    image, stuck = toolkit_facts(plan, options.toolkit)
    view = PreflightView(
        context=session.context,
        server=session.server,
        plan=plan,
        image=image,
        on_migration_failure=stuck,
        report=report,
    )
    sys.stdout.write(view.document() if options.output == "json" else view.table(width=terminal_width()))
    return FAILED if report.failed else UNPROVEN if report.unknown else 0


async def _versions(session: Session, iso: IsoServer, options: PreflightOptions) -> int:
    if problem := await session.read(harvester_problem(session.client)):
        raise session.error(problem)
    try:
        found = await read_releases(session.client, iso, skip_iso=options.skip_iso)
    except Forbidden as error:
        needed = Permissions().needed(error) or str(error)
        (bind,) = await bind_commands(session.client, ROLE)
        raise session.error(f"{needed}:\n{bind}") from error
    except KubeError as error:
        raise session.error(str(error)) from error
    context, server = session.context, session.server
    if options.output == "json":
        sys.stdout.write(version_list.document(found, context=context, server=server))
    else:
        head = preflight_view.head(context=context, server=server, running=found.running, target="")
        sys.stdout.write(version_list.table(found, head=head))
    return 0


def read_plan(file: str) -> Object:
    """Read a plan from YAML or JSON. Raises CommandError."""
    # Imported late: the manager does not read manifests.
    import yaml  # noqa: PLC0415

    shown = "standard input" if file == STANDARD_INPUT else file
    try:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except OSError as error:
        raise CommandError(f"{shown}: {error.strerror}", status=USAGE) from error
    # ValueError: not UTF-8, or a value such as a date that does not exist.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise CommandError(f"{shown}: not YAML: {reason}", status=USAGE) from error
    if len(documents) != 1:
        raise CommandError(f"{shown}: {len(documents)} documents. Use a file with one {KIND}", status=USAGE)
    [plan] = documents
    if objects.text(plan, "kind") != KIND or objects.text(plan, "apiVersion") != API_VERSION:
        raise CommandError(f"{shown}: not an {KIND} of {API_VERSION}", status=USAGE)
    return dict(plan)


def toolkit_facts(plan: Object, toolkit: ToolkitConfig) -> tuple[str, str]:
    """Return the toolkit image that the plan gets, and the treatment of VMs whose migration fails, each for a line.

    Both are empty without a plan, or if it gets no image.
    """
    spec = UpgradePlanSpec.read(objects.mapping(plan, "spec"))
    choice = decide(spec, PlanAnnotations(objects.strings(plan, "metadata", "annotations")), toolkit)
    if not plan or not isinstance(choice, ToolkitChoice):
        return "", ""
    return choice.summary, summary(spec.node_upgrade_option.on_migration_failure, kind=choice.kind)
