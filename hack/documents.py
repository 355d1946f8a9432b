"""`python -m hack.documents`: write the tables of flags and of releases in docs, from the parsers, rows and listings.

A table stands between the lines `<!-- NAME -->` and `<!-- end -->`; tests/docs/test_cli.py compares them.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hack.demo import options as demo
from hack.demo.failures import FAILURES
from hack.demo.stalls import STALLS
from hack.original import catalogue as original
from upgrade_manager.cli.options import command_line
from upgrade_manager.cli.toolkit_options import JOB_COMMANDS
from upgrade_manager.release.migrations import generic
from upgrade_manager.release.migrations.pairs import rows_between
from upgrade_manager.release.migrations.row import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hack.demo.stalls import Stall
    from upgrade_manager.release.migrations.row import Row

#: Pairs of releases with a page: versions of each.
_PAIRS = {"1.7-1.8": ("v1.7.1", "v1.8.0"), "1.8-1.9": ("v1.8.2", "v1.9.0")}
DOCS = Path(__file__).parents[1] / "docs"
DOCUMENTS = ("cli.md", "demo.md", *(f"releases/{name}.md" for name in _PAIRS), "releases/1.7-1.8-original.md")
_TABLE = re.compile(r"<!-- ([^>]+) -->\n(?:.*?\n)??<!-- end -->", re.DOTALL)


def tables() -> Mapping[str, str]:
    """Return each table by the name that marks its place."""
    _, commands = command_line()
    flags = {
        f"flags of upgrade-manager {name}": _flags(one) for name, one in commands.items() if name not in JOB_COMMANDS
    }
    jobs = [f"| `{_usage(commands[name])}` | {_meanings(commands[name])} |" for name in JOB_COMMANDS]
    pairs = {f"rows from {_between(versions)}": _rows(*versions) for versions in _PAIRS.values()}
    return {
        **flags,
        **pairs,
        **original.tables(),
        "flags of the demo": _flags(demo.command_line()),
        "commands of the Jobs": "\n".join(["| command | arguments |", "|---|---|", *jobs]),
        "breaks of the running upgrade": _breaks(STALLS),
        "failures of the running upgrade": _breaks(FAILURES),
    }


def _breaks(table: Mapping[str, Stall]) -> str:
    rows = [f"| `{name}` | `{one.phase}` | {one.what} |" for name, one in table.items()]
    return "\n".join(["| name | begins in | what happens |", "|---|---|---|", *rows])


def filled(text: str) -> str:
    """Return the document with each table as it is now."""
    found = tables()
    return _TABLE.sub(lambda match: f"<!-- {match[1]} -->\n{found[match[1]]}\n<!-- end -->", text)


def _between(versions: tuple[str, str]) -> str:
    return " to ".join(version.rpartition(".")[0] for version in versions)


def _rows(current: str, target: str) -> str:
    head = "| where | change | may touch | carried out by | nothing is left if | way back | source |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *map(_row, rows_between(current, target))])


def _row(row: Row) -> str:
    where = f"{row.place.value}: {PLACES[row.place]}" + ("" if row in generic.ROWS else ", these releases only")
    changes, sources = ("<br>".join(map(str, listed)) for listed in (row.changes, row.sources))
    return f"| {where} | {row.step} | {changes} | {row.carried_out} | {row.done_if} | {row.undo} | {sources} |"


def _flags(parser: argparse.ArgumentParser) -> str:
    rows = [f"| {_names(action)} | {_default(action)} | {_help(action)} |" for action in _actions(parser)]
    epilog = f"\n\n{parser.epilog[0].upper()}{parser.epilog[1:]}." if parser.epilog else ""
    return "\n".join(["| argument | default | meaning |", "|---|---|---|", *rows]) + epilog


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    yield from (one for one in parser._actions if "--help" not in one.option_strings)  # noqa: SLF001  # argparse has no other list


def _names(action: argparse.Action) -> str:
    names = [f"`{name}`" for name in action.option_strings] or [f"`{action.metavar or action.dest}`"]
    choices = " \\| ".join(f"`{one}`" for one in action.choices or ())
    return ", ".join(names) + (f" {choices}" if choices else "")


def _default(action: argparse.Action) -> str:
    if action.default in (None, "", argparse.SUPPRESS, ()) or not action.option_strings:
        return ""
    return f"`{str(action.default).lower() if isinstance(action.default, bool) else action.default}`"


def _help(action: argparse.Action) -> str:
    return ((action.help or "") % vars(action)).replace("|", "\\|")


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the program with its arguments; argparse's own usage depends on Python's version."""
    return " ".join([parser.prog, *(_argument(one) for one in _actions(parser))])


def _argument(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else action.metavar or action.dest.upper()
    words = " ".join(filter(None, [*action.option_strings[:1], str(value)]))
    return f"[{words}]" if action.option_strings and not action.required else words


def _meanings(parser: argparse.ArgumentParser) -> str:
    found = [(one, _help(one)) for one in _actions(parser)]
    return "; ".join(f"{_names(one)}: {text}" for one, text in found if text)


def main() -> None:
    """Write the documents."""
    for name in DOCUMENTS:
        path = DOCS / name
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
