"""Parser of a release's `harvester-release.yaml`, which is downloaded and therefore untrusted.

The phase MetadataPopulate (pipeline/phases/metadata_populate.py) reads a release by it, the Jobs in
toolkit/iso/release_files.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from upgrade_manager.release.errors import NOT_A_RELEASE, BadRepository

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

#: Bytes; small enough not to stall the event loop. A real file has less than 1 kB.
SIZE_LIMIT = 32 * 1024
#: A version that is valid in image tags, URLs, names and label values.
VERSION = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._+-]{0,61}[0-9A-Za-z])?", re.ASCII)
#: An operating system's name, as nodes report it.
_OS = re.compile(r"[0-9A-Za-z][0-9A-Za-z ._:+()-]{0,99}", re.ASCII)
#: An image with registry and tag; messages call it so.
IMAGE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._:/@-]{0,255}", re.ASCII)
_NAMES = {_OS: "name", IMAGE: "image"}
_KEYS: dict[str, re.Pattern[str]] = {
    "harvester": VERSION,
    "harvesterChart": VERSION,
    "os": _OS,
    "kubernetes": VERSION,
    "rancher": VERSION,
    "monitoringChart": VERSION,
    "minUpgradableVersion": VERSION,
}
_REQUIRED = ("harvester", "os", "kubernetes", "rancher")
#: Characters of a bad value that a message shows.
_SHOWN = 40
_KINDS = {
    "seq": "list",
    "map": "mapping",
    "str": "text",
    "int": "number",
    "float": "number",
    "bool": "boolean",
    "timestamp": "date",
}
_STRING, _NULL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"


def parse_release(body: bytes, *, where: str) -> dict[str, str]:
    """Return the values of known keys. Raises BadRepository with all errors of the file at `where`."""
    return parse_values(body, _KEYS, required=_REQUIRED, where=where)


def parse_values(
    body: bytes, patterns: Mapping[str, re.Pattern[str]], *, required: Iterable[str], where: str
) -> dict[str, str]:
    """Return the strings of these keys; `a.b` is b in the mapping a. Raises BadRepository as parse_release."""
    content = _load(body, where, patterns)
    errors = [f"{key} is missing" for key in required if key not in content]
    for key, nodes in content.items():
        if len(nodes) > 1:
            errors.append(f"{key} is set {len(nodes)} times")
        elif not _fits(nodes[0], patterns[key]):
            kind = _NAMES.get(patterns[key], "version")
            errors.append(f"{key} is {_shown(nodes[0])}, not a valid {kind}")
    if errors:
        raise BadRepository(f"{where}: {'; '.join(errors)}; {NOT_A_RELEASE}")
    return {key: content[key][0].value for key in patterns if key in content}


class _Loader(yaml.SafeLoader):
    """Composes YAML without aliases, which can expand exponentially."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", mark)
        return super().compose_node(parent, index)


def _load(body: bytes, where: str, keys: Collection[str]) -> dict[str, list[yaml.Node]]:
    """Return the non-empty values of known keys; other keys are ignored."""
    try:
        document = yaml.compose(body, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        line = f" (line {place.line + 1})" if place else ""
        raise BadRepository(f"{where} is not YAML{line}; {NOT_A_RELEASE}") from error
    if not isinstance(document, yaml.MappingNode):
        kind = f"{_shown(document)}, not a mapping of component versions" if document else "empty"
        raise BadRepository(f"{where} is {kind}; {NOT_A_RELEASE}")
    content: dict[str, list[yaml.Node]] = {}
    for key, value in _values(document):
        if key in keys and not _is_empty(value):
            content.setdefault(key, []).append(value)
    return content


def _values(mapping: yaml.MappingNode, prefix: str = "") -> Iterator[tuple[str, yaml.Node]]:
    """Yield all keys and values; a nested key follows its mapping's key and a dot."""
    for key, value in mapping.value:
        if key.tag == _STRING:
            yield f"{prefix}{key.value}", value
            if isinstance(value, yaml.MappingNode):
                yield from _values(value, f"{prefix}{key.value}.")


def _is_empty(node: yaml.Node) -> bool:
    return node.tag == _NULL or (node.tag == _STRING and not node.value)


def _fits(node: yaml.Node, pattern: re.Pattern[str]) -> bool:
    """Return True if it is a valid string; an unquoted `1.10` is the number 1.1."""
    return node.tag == _STRING and pattern.fullmatch(node.value) is not None


def _shown(node: yaml.Node) -> str:
    kind = _KINDS.get(node.tag.rpartition(":")[2], "value of an unknown type")
    if not isinstance(node, yaml.ScalarNode):
        return f"a {kind}"
    text = repr(node.value[: _SHOWN + 1])
    text = text if len(node.value) <= _SHOWN else f"{text[:_SHOWN]}…"
    return text if node.tag == _STRING else f"{text} (a {kind} in YAML)"
