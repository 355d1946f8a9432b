"""The tables of flags in the pages for users, which are written from the parsers."""

from __future__ import annotations

import argparse
import re

import pytest

from hack import documents
from upgrade_manager.cli import options


@pytest.mark.parametrize("name", documents.DOCUMENTS)
def test_page_is_as_the_parsers_are(name: str) -> None:
    text = (documents.DOCS / name).read_text(encoding="utf-8")
    assert documents.filled(text) == text, "run `make docs`"


def test_every_table_stands_in_a_page() -> None:
    text = "".join((documents.DOCS / name).read_text(encoding="utf-8") for name in documents.DOCUMENTS)
    assert {name for name in documents.tables() if f"<!-- {name} -->\n" not in text} == set()


def test_table_names_every_flag_of_every_command() -> None:
    _, commands = options.command_line()
    flags = {
        flag
        for parser in commands.values()
        for flag in re.findall(r"--[a-z-]+", argparse.ArgumentParser.format_help(parser))
    }
    text = "".join(documents.tables().values())
    assert {flag for flag in flags if f"{flag}`" not in text and f"{flag} " not in text} == {"--help"}


def test_page_names_the_variables_of_the_environment() -> None:
    page = (documents.DOCS / "cli.md").read_text(encoding="utf-8")
    source = documents.DOCS.parents[0] / "upgrade_manager/cli/options.py"
    read = set(re.findall(r'environ(?:\.get\(|, )"([A-Z_]+)"', source.read_text(encoding="utf-8")))
    assert read
    assert {name for name in read if f"| `{name}` |" not in page} == set()


def test_filling_replaces_one_table_only() -> None:
    text = "<!-- commands of the Jobs -->\nold\n<!-- end -->\n\ntext\n\n<!-- commands of the Jobs -->\n<!-- end -->\n"
    table = documents.tables()["commands of the Jobs"]
    marked = f"<!-- commands of the Jobs -->\n{table}\n<!-- end -->\n"
    assert documents.filled(text) == f"{marked}\ntext\n\n{marked}"
