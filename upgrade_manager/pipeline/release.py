"""The release's description of itself, `harvester-release.yaml`: read with suspicion, for it was downloaded."""

from __future__ import annotations

import re

import yaml

from upgrade_manager.pipeline.errors import BadRepository

#: Bytes; the real file has less than one thousand. Reading so many never holds the event loop up for long.
SIZE_LIMIT = 32 * 1024
#: A version, as it goes into image tags, URLs, names and the labels that others make of it: no slash, no blank, no
#: template mark, and no longer than a label's value.
_VERSION = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._+-]{0,61}[0-9A-Za-z])?", re.ASCII)
#: An operating system's name, as nodes report it.
_OS = re.compile(r"[0-9A-Za-z][0-9A-Za-z ._:+()-]{0,99}", re.ASCII)
_KEYS: dict[str, re.Pattern[str]] = {
    "harvester": _VERSION,
    "harvesterChart": _VERSION,
    "os": _OS,
    "kubernetes": _VERSION,
    "rancher": _VERSION,
    "monitoringChart": _VERSION,
    "minUpgradableVersion": _VERSION,
}
#: Without these the upgrade could not tell where it goes.
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
    """The keys that the upgrade needs. Raises BadRepository with everything that is wrong with the file at `where`."""
    content = _load(body, where)
    faults = [f"{key} is missing" for key in _REQUIRED if key not in content]
    for key, nodes in content.items():
        if len(nodes) > 1:
            faults.append(f"{key} is there {len(nodes)} times")
        elif not _fits(nodes[0], _KEYS[key]):
            kind = "name" if _KEYS[key] is _OS else "version"
            faults.append(f"{key} is {_shown(nodes[0])}, which is no {kind}")
    if faults:
        raise BadRepository(f"{where}: {'; '.join(faults)}; the ISO is damaged or no Harvester release")
    return {key: content[key][0].value for key in _KEYS if key in content}


class _Loader(yaml.SafeLoader):
    """Composes YAML without references: a few lines of them can stand for more nodes than memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "references are not allowed", mark)
        return super().compose_node(parent, index)


def _load(body: bytes, where: str) -> dict[str, list[yaml.Node]]:
    """What stands at the keys that we know, where it is not empty; other keys' values may be whatever YAML allows."""
    try:
        document = yaml.compose(body, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        line = f" (line {place.line + 1})" if place else ""
        raise BadRepository(f"{where} is not YAML{line}; the ISO is damaged or no Harvester release") from error
    if not isinstance(document, yaml.MappingNode):
        kind = f"{_shown(document)}, not a mapping of component versions" if document else "empty"
        raise BadRepository(f"{where} is {kind}; the ISO is damaged or no Harvester release")
    content: dict[str, list[yaml.Node]] = {}
    for key, value in document.value:
        if key.tag == _STRING and key.value in _KEYS and not _is_empty(value):
            content.setdefault(key.value, []).append(value)
    return content


def _is_empty(node: yaml.Node) -> bool:
    return node.tag == _NULL or (node.tag == _STRING and not node.value)


def _fits(node: yaml.Node, pattern: re.Pattern[str]) -> bool:
    """A number is no version: `1.10` without quotes is 1.1 to every other reader of the file."""
    return node.tag == _STRING and pattern.fullmatch(node.value) is not None


def _shown(node: yaml.Node) -> str:
    kind = _KINDS.get(node.tag.rpartition(":")[2], "value of a type of its own")
    if not isinstance(node, yaml.ScalarNode):
        return f"a {kind}"
    text = repr(node.value[: _SHOWN + 1])
    text = text if len(node.value) <= _SHOWN else f"{text[:_SHOWN]}…"
    return text if node.tag == _STRING else f"{text} (a {kind} in YAML)"
