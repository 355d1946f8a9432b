"""CustomResourceDefinitions in the YAML files of modules, some of which are templates of Helm charts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from upgrade_manager.kube.objects import Object

#: From a line that opens a template action to its end: the templates in question only fill in labels.
_ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_LOADER: type[yaml.CSafeLoader | yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def definitions_in(files: Iterable[Path]) -> Iterator[Object]:
    """All the CustomResourceDefinitions in the files."""
    for file in files:
        for document in parse(file.read_text(encoding="utf-8")):
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                yield document


def parse(text: str) -> Iterator[Object | None]:
    """The documents of a YAML file or of a chart's template.

    A template's actions go, and with them the key's value that they would give; lines below it that are indented deeper
    were its further entries.
    """
    yield from yaml.load_all(_ACTION.sub("", text), Loader=_LOADER)  # both are safe loaders
