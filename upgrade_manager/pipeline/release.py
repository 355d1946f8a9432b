"""The release's description of itself, `harvester-release.yaml`: read with suspicion, for it was downloaded."""

from __future__ import annotations

import re
from typing import Any

import yaml

from upgrade_manager.pipeline.errors import BadRepository

#: Bytes; the real file has less than one thousand.
SIZE_LIMIT = 256 * 1024
#: A version, as it goes into image tags, URLs and names: no slash, no blank, no template mark.
_VERSION = re.compile(r"v?[0-9A-Za-z][0-9A-Za-z._+-]{0,99}", re.ASCII)
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


def parse_release(body: bytes, *, where: str) -> dict[str, str]:
    """The keys that the upgrade needs. Raises BadRepository with everything that is wrong with the file at `where`."""
    content = _load(body, where)
    faults = [f"{key} is missing" for key in _REQUIRED if content.get(key) in {None, ""}]
    faults += [
        f"{key} is {_shown(content[key])}, which is no {'name' if pattern is _OS else 'version'}"
        for key, pattern in _KEYS.items()
        if content.get(key) not in {None, ""} and not _fits(content[key], pattern)
    ]
    if faults:
        raise BadRepository(f"{where}: {'; '.join(faults)}; the ISO is damaged or no Harvester release")
    return {key: content[key] for key in _KEYS if content.get(key)}


def _load(body: bytes, where: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(body)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        line = f" (line {place.line + 1})" if place else ""
        raise BadRepository(f"{where} is not YAML{line}; the ISO is damaged or no Harvester release") from error
    if not isinstance(content, dict):
        kind = "empty" if content is None else f"a {type(content).__name__}, not a mapping of component versions"
        raise BadRepository(f"{where} is {kind}; the ISO is damaged or no Harvester release")
    return {key: value for key, value in content.items() if isinstance(key, str)}


def _fits(value: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool) else f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
